"""Text and JSON of made-up results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from ptxmm.analysis.result import Error, Failure, Note, Outcome, Result, Status
from ptxmm.analysis.words import Conclusion, Exit
from ptxmm.render import RENDERERS, renderer, schema
from ptxmm.render.document import document
from ptxmm.render.style import Style, clean
from ptxmm.render.text import note_lines, summary, table, verdict_line
from tests.conftest import GOLDEN
from tests.support import ROOT

PLAIN, COLOUR = Style(False), Style(True)
RESULT = Result(
    file="mp.litmus",
    test="MP",
    model="ptx-8.5",
    engine="z3",
    quantifier="exists",
    condition="P1:r0 == 1 /\\ P1:r1 == 0",
    holds=True,
    observation="sometimes",
    status="complete",
    flags=("data-race",),
    expected="never",
    conclusion=Conclusion.contradicted,
    outcomes=(
        Outcome({"P1:r0": 0, "P1:r1": 0}, {"x": "&y+4"}, False),
        Outcome({"P1:r0": 1, "P1:r1": 0}, {"x": -10}, True),
    ),
    listed=True,
    notes=(Note("reading", "reading dep=syn"),),
    seconds=0.0123456789,
)
SHORT = replace(
    RESULT,
    model="ptx-6.0",
    holds=None,
    observation=None,
    status="bounded",
    flags=(),
    expected=None,
    conclusion=Conclusion.inconclusive,
    listed=False,
    outcomes=RESULT.outcomes[:1],
    notes=(Note("bound", "a loop goes on after 3 backward branches"),),
)
UNCONDITIONAL = replace(
    RESULT,
    quantifier=None,
    condition=None,
    holds=None,
    observation=None,
    expected=None,
    conclusion=Conclusion.unchecked,
    outcomes=(Outcome({}, {"x": 1}, None),),
    flags=(),
    notes=(),
)
EMPTY = replace(
    RESULT,
    holds=False,
    observation=None,
    flags=("deadlock",),
    expected="none+deadlock",
    conclusion=Conclusion.expected,
    outcomes=(),
    notes=(),
)
ERROR = Error("syntax", "no good", 3, 7, "do better")
FAILURE = Failure("bad.litmus", None, None, ERROR, (), "bad.litmus:3:7: error: no good")
ALL = (RESULT, SHORT, UNCONDITIONAL, EMPTY, FAILURE)


def test_document(golden: Callable[[str, str], None]) -> None:
    text = document(ALL)
    golden("document.json", text + "\n")
    parsed = json.loads(text)
    assert parsed["schema"] == "ptxmm/2"
    assert list(parsed["results"][0]) == [
        "analysis", *Result.__struct_fields__,
    ]  # fmt: skip
    assert parsed["results"][1]["listed"] is False


def test_tables(golden: Callable[[str, str], None]) -> None:
    golden("tables.txt", "\n\n".join("\n".join(table(r, PLAIN)) for r in ALL if isinstance(r, Result)) + "\n")


def test_verdict_lines(golden: Callable[[str, str], None]) -> None:
    lines = []
    for report in ALL:
        lines.append(verdict_line(report, PLAIN, 12, isinstance(report, Result) and report.model == "ptx-6.0"))
        if isinstance(report, Result):
            lines += note_lines(report)
    golden("verdicts.txt", "\n".join([*lines, summary(ALL, 1.25, PLAIN)]) + "\n")


def test_colours_are_extra() -> None:
    assert "\x1b[31mFAIL" in verdict_line(RESULT, COLOUR, 12, False)
    assert "\x1b" not in verdict_line(RESULT, PLAIN, 12, False)
    assert "\x1b[1m* P1:r0=1" in "\n".join(table(RESULT, COLOUR))


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert clean("a\x1b[2Jb\nc\td") == "a�[2Jb c d"
    assert "\x1b" not in "\n".join(table(replace(RESULT, test="\x1b[31m", condition="\x1b"), PLAIN))


def test_the_documents_say_what_words_and_codes_mean() -> None:
    """docs/results.md against the enumerations, and its table of formats against that of the renderers."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for word in Conclusion:
        assert re.search(rf"\\| `{word}` \\| {word.meaning}: `{re.escape(word.mark)}`", text), word
    codes = re.findall(r"^\| ([0-9]+) \| (.*) \|$", text, re.MULTILINE)
    assert codes == [(str(int(code)), code.meaning) for code in Exit if code < 100]
    ended = [int(code) for code in Exit if code > 100]
    assert "\n{}, {} and {} mean that ptxmm was interrupted".format(*ended) in text
    statuses = re.findall(r"^\| (?:`status`)? ?\| `(\w+)` \|", text[text.index("| `status` |") :], re.MULTILINE)
    assert statuses[: len(get_args(Status))] == list(get_args(Status))
    for name, kinds in RENDERERS.items():
        (commands,) = re.findall(rf"^\| `{name}` \| (.*?) \|", text, re.MULTILINE)
        assert (set(re.findall(r"`(\w+)`", commands)) or set(RENDERERS["text"])) == set(kinds)


def test_every_renderer_is_there() -> None:
    for name, kinds in RENDERERS.items():
        assert all(callable(renderer(kind, name)) for kind in kinds)


def test_the_schema_is_that_of_the_types() -> None:
    """``python -m ptxmm.render.schema > docs/schema.json`` writes it anew."""
    assert (ROOT / "docs" / "schema.json").read_text(encoding="utf-8") == schema.text()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.name)
def test_documents_are_as_the_schema_says(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    if "schema" not in document:  # one entry
        document = {"schema": "ptxmm/2", "results": [document]}
    validator = Draft202012Validator(json.loads(schema.text()))
    assert [error.message for error in validator.iter_errors(document)] == []
    for entry in document["results"]:
        del entry["file"]
    assert list(validator.iter_errors(document))
