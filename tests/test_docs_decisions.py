"""``docs/decisions.md``: every decision that the project cites is there, and what it names exists."""

from __future__ import annotations

import re
from functools import cache

import pytest
from msgspec import Struct

from ptxmm.cat import index
from tests.mutants import LITMUS, ROOT
from tests.test_docs_model import table

CITED = ("README.md", "ptxmm/**/*.py", "ptxmm/models/*", "docs/**/*.md", "litmus/**/*.litmus", "tests/**/*.py",
         "tests/*.t*", "tests/golden/*")  # fmt: skip
# What stands at the end of a section: readings, models, tests.
_END = re.compile(r"^(?:Readings?: (?P<readings>.*?)\. )?Models: (?P<models>.*?)\. Tests: (?P<tests>.*)\.$")


class Decision(Struct, frozen=True):
    """A section of the page: its number, the quotations, and what its last paragraph names."""

    number: int
    quotations: list[str]
    text: str
    readings: dict[str, list[str]]
    models: str
    tests: list[str]


@cache
def decisions() -> dict[int, Decision]:
    page = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    page = re.sub(r"^## .*$", "", page, flags=re.MULTILINE)
    found = {}
    for anchor, number, section in re.findall(
        r'^<a id="a(\d+)"></a>\n\n### A(\d+): .+\n((?:(?!^<a id).*\n?)*)', page, re.MULTILINE
    ):
        assert anchor == number
        first, *middle, last = [part.strip() for part in section.strip().split("\n\n")]
        end = _END.match(" ".join(last.split()))
        assert end, f"A{number}: no line with models and tests"
        found[int(number)] = Decision(
            int(number),
            [line for line in first.splitlines() if line != ">"],
            "\n".join(middle),
            {key: re.findall(r"`([^`]+)`", values)
             for key, values in re.findall(r"`([^`]+)` \(([^)]*)\)", end["readings"] or "")},
            end["models"],
            re.findall(r"`([^`]+)`", end["tests"]),
        )  # fmt: skip
    return found


def cited() -> dict[int, set[str]]:
    """The decisions that files cite, in their names or texts."""
    found: dict[int, set[str]] = {}
    for path in (path for pattern in CITED for path in ROOT.glob(pattern) if path.is_file()):
        name = str(path.relative_to(ROOT))
        text = path.name + "\n" + path.read_text(encoding="utf-8")
        for number in re.findall(r"(?<![\w.%$&-])A(\d{1,2})(?!\w)", text):
            found.setdefault(int(number), set()).add(name)
    return found


def test_every_decision_that_is_cited_has_its_section() -> None:
    missing = {f"A{n}": sorted(files)[:3] for n, files in cited().items() if n not in decisions()}
    assert not missing
    assert list(decisions()) == list(range(1, len(decisions()) + 1))


def test_each_kind_of_file_cites_some() -> None:
    kinds = {name.split("/")[0] for files in cited().values() for name in files}
    assert kinds >= {"ptxmm", "docs", "litmus", "tests"}


@pytest.mark.parametrize("number", decisions())
def test_a_section_has_what_it_needs(number: int) -> None:
    """Quotations with their section of the ISA, a text, models, and tests that exist and state verdicts."""
    decision = decisions()[number]
    assert decision.quotations
    for quotation in decision.quotations:
        assert re.fullmatch(r'> \d+(\.\d+)*( (of PTX ISA \d\.\d|Table \d+|[a-z]+|API|\(\d\)))*: ".+"', quotation)
    assert len(decision.text) > 150
    models = re.findall(r"`([^`]+)`", decision.models)
    assert ("all" in decision.models or models) and set(models) - {
        ".cluster",
        "on",
        "off",
        "operation",
        "halves",
    } <= set(index().models)
    assert decision.tests
    for name in decision.tests:
        assert "Expect=" in (LITMUS / f"{name}.litmus").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", decisions())
def test_files_and_links_of_a_section_exist(number: int) -> None:
    text = decisions()[number].text
    for name in re.findall(r"`(tests/[^`]+)`", text):
        assert (ROOT / name).is_file()
    for other in re.findall(r"\]\(#a(\d+)\)", text):
        assert int(other) in decisions()
    for page in re.findall(r"\]\((\w+\.md)", text):
        assert (ROOT / "docs" / page).is_file()


@pytest.mark.parametrize("number", decisions())
def test_readings_of_a_section(number: int) -> None:
    for key, values in decisions()[number].readings.items():
        assert values == list(index().readings[key].values)


@pytest.mark.parametrize("row", table("readings.md", 6), ids=lambda row: row[0].split("`")[1])
def test_a_reading_and_its_decision_name_each_other(row: list[str]) -> None:
    """The table of readings links the decisions that have its key, and these have the tests that tell it apart."""
    key = row[0].split("`")[1]
    named = [int(number) for number in re.findall(r"\[A(\d+)\]\(decisions\.md#a\1\)", row[0])]
    assert named and named == [number for number, decision in decisions().items() if key in decision.readings]
    tests = {test for number in named for test in decisions()[number].tests}
    assert set(re.findall(r"`([^`]+/[^`]+)`", row[5])) <= tests


def test_the_page_is_linked() -> None:
    assert "decisions.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in ("model.md", "readings.md", "index.md", "litmus-tests.md"):
        assert "(decisions.md" in (ROOT / "docs" / page).read_text(encoding="utf-8")
