"""The base sets and relations of the model language: one table, which the documentation and both sides agree with."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.cat import index, load
from ptxmm.cat.names import BASE_RELATIONS, BASE_SETS, RELATIONS, SETS, Row, absent
from ptxmm.engines.symbolic.problem import read_as
from ptxmm.events.explicit.readings import readings
from ptxmm.events.explicit.relations import structure as explicit
from ptxmm.events.explicit.relations import tags
from ptxmm.events.explicit.relations.barriers import PHASES
from ptxmm.events.explicit.relations.base import WITNESS, base_of
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom, Scene
from ptxmm.events.symbolic.build import build
from ptxmm.events.symbolic.relations import structure as symbolic
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.relations.symbolic import EventSet, Relation
from tests.support import ROOT, parse_one

TEST = parse_one("PTX t\n{ x = 0; }\n P0@cta 0 ;\n st.weak x, 1 ;\nexists (x == 1)\n")


NEEDING = {name for row in BASE_RELATIONS if row.needs for name in row.names}


def table(head: str, rows: tuple[Row, ...]) -> Iterator[str]:
    """The rows as docs/cat.md has them."""
    yield f"| name | {head} | PTX ISA | readings |"
    yield "|---|---|---|---|"
    for row in rows:
        names, keys = (", ".join(f"`{word}`" for word in words) for words in (row.names, row.readings))
        yield f"| {names} | {row.about} | {row.section} | {keys} |"


def test_the_documentation_has_the_table() -> None:
    page = (ROOT / "docs" / "cat.md").read_text("utf-8")
    for title, head, rows in (("sets", "events", BASE_SETS), ("relations", "pairs", BASE_RELATIONS)):
        section = page.partition(f"\n## Base {title}\n")[2].partition("\n## ")[0]
        assert [line for line in section.splitlines() if line.startswith("|")] == list(table(head, rows))


def test_each_name_is_there_once() -> None:
    names = [name for row in (*BASE_SETS, *BASE_RELATIONS) for name in row.names]
    assert len(names) == len(set(names)) == len(SETS) + len(RELATIONS)


def test_the_explicit_side_supplies_them_all() -> None:
    assert set(tags.SETS) == SETS
    made = {"id", "sr", "po-loc", "ext"}  # of others
    assert {*explicit.BUILDERS, *PHASES, *WITNESS, *made} == RELATIONS | {"id"}
    lookup = base_of(Layout(Scene(TEST), [[]]), ReadsFrom(), 0, 0, {})
    assert all(lookup(name) is not None for name in SETS | RELATIONS)
    assert lookup("other") is None


def test_the_symbolic_side_supplies_them_all() -> None:
    base = Base(build(TEST, (), read_as(load("ptx-8.5").readings, 3), lambda: None))
    assert all(isinstance(base(name), EventSet) for name in SETS)
    assert all(isinstance(base(name), Relation) for name in RELATIONS)
    assert set(symbolic.RELATIONS) | set(symbolic.VARYING) <= RELATIONS


class Asked(dict[str, str]):
    """Readings that note which keys are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_asked: set[str] = set()

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        self.keys_asked.add(key)
        return default


def test_the_readings_that_events_follow() -> None:
    told = {key for row in (*BASE_SETS, *BASE_RELATIONS) for key in row.readings}
    for ask in (readings, lambda given: read_as(given, 3)):
        asked = Asked()
        ask(asked)
        others = {"griddep", "wgmma-mov"}  # which waits decide who begins, and which copies are undefined
        assert told == asked.keys_asked - others <= index().readings.keys()


def test_relations_are_empty_without_the_sets_that_the_table_names() -> None:
    met: set[str] = set()
    for path in sorted((ROOT / "litmus").rglob("*.litmus"))[::3]:
        test = parse_one(path.read_text("utf-8"))
        base = Base(build(test, (), read_as(load("ptx-8.5").readings, 3), lambda: None))
        empty = absent({name for name in SETS if base(name) == base.algebra.empty_set()})
        some = {name for name in RELATIONS if any(base.algebra.pairs(base.relation(name)))}
        assert not some & empty, path.name
        met |= some
    assert met >= NEEDING - {"api-indirect", "mbcount", "mbnext"}
