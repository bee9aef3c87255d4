"""Do the text, the JSON entry and the exit code of a result say the same?"""

from __future__ import annotations

import re

from ptxmm.analysis.result import Failure, Report
from ptxmm.cli.exits import exit_of
from ptxmm.render import document
from ptxmm.render.style import Style
from ptxmm.render.text import verdict_line

_MARKS = {"ok": "expected", "FAIL": "contradicted", "?": "inconclusive", "-": "unchecked"}
_CODES = {"ok": 0, "FAIL": 1, "?": 3, "-": 0, "error": 2}
_ANSWERS = {True: "yes", False: "no", None: "unknown"}


def check_alike(report: Report) -> None:
    """Assert that the three agree on ``report``."""
    line = verdict_line(report, Style(False), 0, False)
    mark, *words = re.split(r"\s+", line)
    code = int(exit_of(report))
    if isinstance(report, Failure):
        assert (mark, code) in (("error", 2), ("error", 3), ("error", 4)) and "error" in document.failure(report)
        return
    entry = document.result(report)
    assert (entry["conclusion"], code) == (_MARKS[mark], _CODES[mark]), line
    assert entry["condition"] is None or f": {_ANSWERS[entry['holds']]}" in line, line
    assert entry["observation"] is None or entry["observation"] in words, line
    assert ("inconclusive" in words) == (entry["status"] == "inconclusive"), line
    if mark == "?":
        assert entry["status"] != "complete", line
        # What one state settles stays settled, though what is expected is not.
        settled = entry["expected"] not in (None, "holds") and entry["status"] in ("bounded", "timeout")
        assert entry["holds"] is None or settled, line
    else:
        assert entry["status"] != "inconclusive", line
    if mark == "ok" and entry["expected"] == "holds":
        assert entry["holds"] is True and not {"vacuous", "deadlock"} & set(entry["flags"]), line
    if entry["holds"] and entry["condition"]["kind"] in ("exists", "~exists", "forall"):
        assert report.outcomes, f"{line}: holds of nothing"
