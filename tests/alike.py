"""Do the text, the JSON entry and the exit code of a result say the same?"""

from __future__ import annotations

import re

from ptxmm.analysis.result import Failure, Report
from ptxmm.cli.exits import exit_of
from ptxmm.render.style import Style
from ptxmm.render.text import verdict_line
from tests.documents import entry

_MARKS = {"ok": "expected", "FAIL": "contradicted", "?": "inconclusive", "-": "unchecked"}
_CODES = {"ok": 0, "FAIL": 1, "?": 3, "-": 0, "error": 2}
_ANSWERS = {True: "yes", False: "no", None: "unknown"}


def check_alike(report: Report) -> None:
    """Assert that the three agree on ``report``."""
    line = verdict_line(report, Style(False), 0, False)
    mark, *words = re.split(r"\s+", line)
    code = int(exit_of(report))
    if isinstance(report, Failure):
        assert (mark, code) in (("error", 2), ("error", 3), ("error", 4))
        assert entry("check", report)["error"]["kind"] == report.error.kind
        return
    found = entry("check", report)
    assert (found["conclusion"], code) == (_MARKS[mark], _CODES[mark]), line
    assert found["condition"] is None or f": {_ANSWERS[found['holds']]}" in line, line
    assert found["observation"] is None or found["observation"] in words, line
    assert ("inconclusive" in words) == (found["status"] == "inconclusive"), line
    if mark == "?":
        assert found["status"] != "complete", line
        # What one state settles stays settled, though what is expected is not.
        settled = found["expected"] not in (None, "holds") and found["status"] in ("bounded", "timeout")
        assert found["holds"] is None or settled, line
    else:
        assert found["status"] != "inconclusive", line
    if mark == "ok" and found["expected"] == "holds":
        assert found["holds"] is True and not {"vacuous", "deadlock"} & set(found["flags"]), line
    if found["holds"] and found["quantifier"] in ("exists", "~exists", "forall"):
        assert report.outcomes, f"{line}: holds of nothing"
