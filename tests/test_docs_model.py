"""``docs/model.md`` and ``docs/readings.md``: all that they name exists, every change of verdict they claim happens."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

import ptxmm.formats
from ptxmm.analysis.expectation import Expectation, expectations
from ptxmm.analysis.outcomes import check
from ptxmm.cat import Model, index, load, names, parse_model
from ptxmm.cat.syntax import Let
from ptxmm.errors import PtxmmError
from tests.mutants import (
    LITMUS,
    ROOT,
    Mutant,
    case_named,
    mutants,
    own_verdict,
    statement_text,
    statements,
    verdict,
)
from tests.mutants_exempt import exempt

MODEL = "ptx-8.5"
# The headings of chapter 8, with the numbered clauses below them and the operation types of Table 19.
TYPES = (
    "atomic", "read", "write", "memory", "volatile", "acquire", "release", "mmio", "memory fence", "proxy fence",
    "strong", "weak", "synchronizing",
)  # fmt: skip
PARAGRAPHS = (
    "8.1", "8.1.1", "8.2", "8.2.1", "8.2.2", "8.2.3", "8.2.4", "8.2.5", "8.2.6", "8.3",
    *(f"8.4 {kind} operation" for kind in TYPES), "8.4.1",
    "8.5 .cta", "8.5 .cluster", "8.5 .gpu", "8.5 .sys", "8.6", "8.7 (1)", "8.7 (2)", "8.7 (3)", "8.7.1", "8.7.2",
    "8.7.2 RMW", "8.8 release (1)", "8.8 release (2)", "8.8 release (3)",
    "8.8 acquire (1)", "8.8 acquire (2)", "8.8 acquire (3)", "8.9", "8.9.1", "8.9.1.1", "8.9.2 (1)", "8.9.2 (2)",
    "8.9.3", "8.9.4 (1)", "8.9.4 (2)", "8.9.4 (3)", "8.9.4 (4)", *(f"8.9.4 API ({n})" for n in range(1, 8)),
    "8.9.4 API", "8.9.5 base (1)", "8.9.5 base (2)", "8.9.5 base (3)", "8.9.5 ppbc (1)", "8.9.5 ppbc (2)",
    "8.9.5 ppbc (3)", "8.9.5 causality (1)", "8.9.5 causality (2)", "8.9.6", "8.9.7 (1)", "8.9.7 (2)", "8.9.7 (3)",
    "8.10.1", "8.10.2", "8.10.3 single-copy (1)", "8.10.3 single-copy (2)", "8.10.3 RMW (1)", "8.10.3 RMW (2)",
    "8.10.4", "8.10.5", "8.10.6 (1)", "8.10.6 (2)",
)  # fmt: skip


class Row(Struct, frozen=True):
    """A row of the page: ``change`` is what is left out ("-": nothing), ``noticed`` the tests, or why there is none."""

    paragraph: str
    model: str
    change: str
    noticed: str

    @property
    def tests(self) -> list[str]:
        """The tests that notice the change."""
        return quoted(self.noticed)


def quoted(cell: str) -> list[str]:
    """What stands between backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def table(page: str, columns: int) -> list[list[str]]:
    """The cells of all rows of the tables on a page, without heads; code with a bar in it is in ``<code>``."""
    lines = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    rows = [[re.sub(r"<code>(.*?)</code>", lambda m: f"`{html.unescape(m[1])}`", cell) for cell in row] for row in rows]
    assert all(len(row) == columns for row in rows), f"{page}: a row has not {columns} cells"
    rules = {i for i, row in enumerate(rows) if set(row[0]) == {"-"}}
    return [row for i, row in enumerate(rows) if i not in rules and i + 1 not in rules]


ROWS = [Row(p, model, change.strip("`"), noticed) for p, _, model, change, noticed in table("model.md", 5)]
CHANGED = [row for row in ROWS if row.change != "-"]
UNCHANGED = [row for row in ROWS if row.change == "-"]
READINGS = table("readings.md", 6)


@cache
def mutants_by_name() -> dict[str, Mutant]:
    return {m.name: m for m in mutants(MODEL)}


@cache
def changed(change: str) -> Model:
    """The model with a change as the page writes it."""
    if change.startswith("reading "):
        return load(f"{MODEL}[{change.removeprefix('reading ')}]")
    if change in mutants_by_name():
        return mutants_by_name()[change].load()
    lines = [statement_text(s) for s in statements(MODEL)]
    lines = [change, *lines] if change.startswith("let ") else [*lines, change]
    shipped = load(MODEL)
    model = parse_model(f'"{MODEL}"\n' + "\n".join(lines) + "\n", f"{MODEL}.cat", dict(shipped.readings))
    return replace(model, coverage=shipped.coverage)


@cache
def vocabulary() -> frozenset[str]:
    """Names that the page may use: definitions, axioms and flags, base names, readings, a function."""
    defined = {d.name for s in statements(MODEL) if isinstance(s, Let) for d in s.definitions}
    axioms = {axiom.name for axiom in load(MODEL).axioms}
    keys = {*index().readings, "elements", "undefined"}
    return frozenset(defined | axioms | names.SETS | names.RELATIONS | keys)


def test_every_paragraph_is_there_in_order() -> None:
    order = list(dict.fromkeys(row.paragraph for row in ROWS))
    assert sorted(order) == sorted(PARAGRAPHS)
    numbers = [[int(n) for n in paragraph.split()[0].split(".")] for paragraph in order]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.paragraph)
def test_names_exist(row: Row) -> None:
    for name in quoted(row.model):
        assert name in vocabulary() or (ROOT / name).is_file(), f"`{name}` is no definition and no file"
    for name in row.tests if row in CHANGED else []:
        assert (LITMUS / f"{name}.litmus").is_file()


@pytest.mark.parametrize("row", CHANGED, ids=lambda row: f"{row.paragraph}-{row.change}")
def test_change_is_noticed(row: Row) -> None:
    """The verdict, status or flags of two tests are others with the change."""
    assert len(set(row.tests)) >= 2
    for name in row.tests:
        own, other = own_verdict(name, MODEL), verdict(case_named(name), changed(row.change))
        assert None not in (own, other)
        assert own != other, f"litmus/{name} does not notice {row.change}"


@pytest.mark.parametrize("row", UNCHANGED, ids=lambda row: row.paragraph)
def test_reasons(row: Row) -> None:
    """Where no test notices there is a reason; a change it speaks of is proved unnoticeable, what it names exists."""
    assert len(row.noticed) > 20
    for name in row.tests:
        if name in mutants_by_name():
            assert exempt(mutants_by_name()[name]), f"{name} is not exempt"
        elif "/" in name:
            assert (ROOT / name).is_file() or (LITMUS / f"{name}.litmus").is_file()


@pytest.mark.parametrize(
    "instruction",
    (
        "tex.1d.v4.s32.s32 {r0, r1, r2, r3}, [x, {r4}]",
        "suld.b.1d.b32.trap r0, [x, {r1}]",
        "ld.global.nc.u32 r0, [x]",
    ),
)
def test_what_the_page_calls_refused(instruction: str) -> None:
    """8.1: outside the model, and said to be so."""
    text = (
        f"PTX t\n{{\n  .global .u32 x = 0;\n}}\n P0 | P1 ;\n {instruction} | st.global.u32 [x], 1 ;\nexists (x == 1)\n"
    )
    with pytest.raises(PtxmmError) as refused:
        check(ptxmm.formats.parse(text, "t.litmus")[0], load(MODEL))
    assert refused.value.kind == "unsupported"


def test_readings_are_those_of_the_index() -> None:
    found = {quoted(key)[0]: (quoted(v), section, text, about) for key, v, section, text, about, _ in READINGS}
    known = index().readings
    assert found == {key: (list(r.values), r.section, r.text, r.about) for key, r in known.items()}
    assert list(found) == list(known)


@pytest.mark.parametrize("row", READINGS, ids=lambda row: row[0].strip("`"))
def test_readings_are_told_apart(row: list[str]) -> None:
    """For each value but the default, a file states both verdicts, which differ, and the checker gives them."""
    (key,), values, told = quoted(row[0]), quoted(row[1]), row[5].split("; ")
    seen = []
    for item in told:
        value, name, *others = quoted(item)
        model = others[0] if others else MODEL
        own, other = re.fullmatch(r".*, (\S+) becomes (\S+)", item).groups()  # type: ignore[union-attr]
        assert own != other
        stated = expectations(case_named(name).test, tuple(index().models))
        changed_model = f"{model}[{key}={value}]"
        assert stated[model] == Expectation(own, stated[model].deadlock) and str(stated[model]) == own
        assert str(stated[changed_model]) == other
        assert own_verdict(name, model) != own_verdict(name, changed_model)
        default = load(model).readings[key]
        assert value in values and value != default
        seen.append(value)
    assert set(seen) == set(values) - {load(MODEL).readings[key]}


def test_pages_are_in_the_navigation() -> None:
    listed = (Path(ROOT) / "mkdocs.yml").read_text()
    assert "model.md" in listed and "readings.md" in listed
