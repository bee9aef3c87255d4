"""Tests made of cycles: names, texts, none twice, and none missing that an independent enumeration finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ptxmm.analysis.outcomes import check
from ptxmm.cli.generating import Wanted, meaningful, remark_on
from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import parse as read
from ptxmm.formats.writer import same, write
from ptxmm.generate.cycles.cycle import SHAPES, Cycle, canonical, fault, parse, place_name, rotations
from ptxmm.generate.cycles.family import EDGES, Family, checked, drawn, every, places, shapes
from ptxmm.generate.cycles.litmus import litmus
from ptxmm.generate.cycles.strength import stronger, weakest
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from tests.commands import Run
from tests.support import model_named

ORDERS = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "fence.acq_rel", "fence.sc")
RICH = Family(3, 5, ORDERS, ("cta", "gpu", "sys"), ("cta", "cluster", "gpu", "sys"), EDGES)


def sampled(family: Family, count: int, seed: int = 1) -> list[Cycle]:
    found = drawn(family, list(shapes(family)), seed)
    return [next(found) for _ in range(count)]


SAMPLED = [line.split() for line in (Path(__file__).parent / "golden" / "cycles-sampled.txt").read_text().splitlines()]
"""The names of 300 cycles of ``RICH`` as they are drawn, and a word where the condition says something."""
RICH_SAMPLE = [parse(name) for name, *_ in SAMPLED]
WORDS = (
    *("Rfe", "Fre", "Coe", "Rfi", "Fri", "Coi", "PodWW", "PodWR", "PodRW", "PodRR", "PosRR", "PosWR", "Rmw", "VecWW"),
    *("VecRR", "BarsWR", "BardWW", "MbardWR", "ClusterdWR", "PodRW.addr", "PodRW.data", "PodRR.ctrl", "PodWR.proxy"),
    *("PodWW.fence.sc.gpu", "Rmw.acq_rel.sys", "relaxed.cta", "acquire.gpu", "release.sys", "weak.alias", "weak.b64"),
    *("MP", "2+2W", "volatile", "PodXX", "+", ".", "Rfe.", "acquire"),
)


# -- names and texts ---------------------------------------------------------------------------------------------------


def test_shapes_with_a_name_are_canonical() -> None:
    for name, text in SHAPES.items():
        assert parse(name) == parse(text) and parse(name).shape == text


@pytest.mark.parametrize("cycle", RICH_SAMPLE[:100], ids=lambda cycle: cycle.name)
def test_a_name_is_the_cycle(cycle: Cycle) -> None:
    assert parse(cycle.name) == parse(cycle.name.replace("+", "  ").replace("@", " @ ")) == cycle
    for turned in rotations(cycle):
        assert canonical(turned) == cycle == parse(turned.name)


@pytest.mark.parametrize("cycle", RICH_SAMPLE, ids=lambda cycle: cycle.name)
def test_a_test_is_read_and_written(cycle: Cycle) -> None:
    (test,) = read(litmus(cycle), "generated.litmus")
    assert test.name == cycle.name and len(test.threads) == len(cycle.threads)
    assert same(test, read(write(test), "written.litmus")[0])
    assert len(test.description.split()) > 20


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("VecWW Rfe VecRR Fre", ["st.weak.global.v2.u32 [x], {1, 1}", "ld.weak.global.v2.u32 {r1, r0}, [x]"]),
        ("BarsWR Fre@cta", ["st.weak.global.u32 [x], 1", "bar.sync 0", "bar.sync 0", "ld.weak.global.u32 r0, [x]"]),
        ("Rmw.acq_rel.sys PodWW Rfe weak.alias PodRW.proxy Rfe", None),
        ("PodRW.data Rfe PodRW.ctrl Rfe", None),
        ("PodRW.addr Rfe PodRW.addr Rfe", None),
        ("MbardWW Coe PodWW@cluster", None),
        ("IRIW@000,001,000,010", None),
    ],
)  # fmt: skip
def test_what_is_written(text: str, lines: list[str] | None) -> None:
    cycle = parse(text)
    (test,) = read(litmus(cycle), "generated.litmus")
    if lines is not None:
        assert [op.source.text.strip() for _, op in test.instructions] == lines
    assert observation(weakest(cycle), "sc") == "never"


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("", "there is no edge", 1),
        ("PodWW Rfx", "`Rfx` is no edge and no order", 7),
        ("PoWW Rfe", "is it of one location (s) or not (d)?", 1),
        ("Pod Rfe", "Pod needs two directions", 1),
        ("VecWR Fre", "Vec needs two directions", 1),
        ("PodWW relaxed Rfe", "`relaxed` has no scope", 7),
        ("PodWW relaxed.far Rfe", "is no order of an access", 7),
        ("PodWW release.gpu acquire.gpu Rfe", "this access has an order already", 19),
        ("PodWR.data Fre", "is from a read to a write", 1),
        ("PodWW.fence.sc Rfe", "is none of fence.acq_rel.SCOPE", 1),
        ("Rfe.gpu PodRR Fre", "nothing stands in Rfe", 1),
        ("Rmw.weak PodWW Rfe", "is no order and scope of an atomic", 1),
        ("PodWW Fre", "PodWW ends with a write, and Fre begins with a read", 1),
        ("PodWW", "fewer than two edges to another thread", 1),
        ("BardWW BardWW@cta", "the threads wait for each other", 1),
        ("Rfe PodRR Fre", "changes its location once", 1),
        ("Rfe Fre", "every write would come after itself", 1),
        ("Rfe PosRR PosRR Fre", "not one edge of program order but PosRR, PosRR", 1),
        ("PodWW acquire.gpu Rfe PodRR Fre", "a write is not acquire", 1),
        ("MP@near", "says no places", 4),
        ("MP@000,001,002", "it has 2 threads, and 3 places", 4),
        ("BarsWR Fre@gpu", "Bar is between the only two threads of a CTA", 12),
        ("PodWW MbardWR Fre@sys", "Mbar is between two threads of a cluster", 19),
    ],
)  # fmt: skip
def test_what_is_no_cycle(text: str, said: str, column: int) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse(text)
    assert text != "Rfe.gpu PodRR Fre" or "stands before its edge" in str(caught.value)
    assert said in caught.value.message and caught.value.column == column and caught.value.kind == "usage"


# -- families ----------------------------------------------------------------------------------------------------------

Signature = tuple[tuple[tuple[str, int, int], ...], ...]


def least(threads: list[tuple[tuple[str, int, int], ...]]) -> Signature:
    """Threads of (what, location, value) in every order, with locations as they first occur: the least."""

    def renamed(order: tuple[tuple[tuple[str, int, int], ...], ...]) -> Signature:
        names: dict[int, int] = {}
        return tuple(tuple((what, names.setdefault(x, len(names)), value) for what, x, value in body) for body in order)

    return min(renamed(order) for order in permutations(threads))


def signature(text: str) -> Signature:
    """That of a litmus test without fences and dependencies, with the values that its condition asks for."""
    (test,) = read(text, "generated.litmus")
    asked = dict(part.split(" == ") for part in text.splitlines()[-1].removeprefix("exists (")[:-1].split(" /\\ "))
    names = {name: number for number, name in enumerate(test.objects)}
    threads = []
    for thread in test.threads:
        body = []
        for op in thread.body:
            assert isinstance(op, (ops.Load, ops.Store)) and isinstance(op.address.base, ops.Sym)
            what = f"{'R' if isinstance(op, ops.Load) else 'W'}{op.sem}{op.scope}"
            if isinstance(op, ops.Load):
                (register,) = op.dst
                assert isinstance(register, ops.Reg)
                value = int(asked[f"{thread.name}:{register.name}"])
            else:
                (stored,) = op.values
                assert isinstance(stored, ops.Imm)
                value = stored.value
            body.append((what, names[op.address.base.name], value))
        threads.append(tuple(body))
    return least(threads)


def critical(threads: int, accesses: int) -> Iterator[list[list[tuple[str, int, int]]]]:
    """Every execution of every program with so many threads and accesses that is one critical cycle (Shasha and Snir
    1988): all its events lie on one cycle of program order and communication; a thread has at most two accesses, of
    different locations, next to each other on the cycle; a location at most three, of different threads, of which no
    two that are next but one communicate directly. Threads of (direction, location, position in coherence order of the
    write or of the one that is read). Nothing here knows how cycles are generated."""
    for sizes in product((1, 2), repeat=threads):
        if sum(sizes) != accesses:
            continue
        events = [(t, k) for t, size in enumerate(sizes) for k in range(size)]
        for directions in product("RW", repeat=accesses):
            for where in product(range(accesses // 2), repeat=accesses):
                if sorted(set(where)) != list(range(max(where) + 1)) or any(
                    where.count(x) not in (2, 3) for x in where
                ):
                    continue
                yield from _executions(events, directions, where)


def _executions(
    events: list[tuple[int, int]], directions: tuple[str, ...], where: tuple[int, ...]
) -> Iterator[list[list[tuple[str, int, int]]]]:
    n = len(events)
    writes = {x: [i for i in range(n) if where[i] == x and directions[i] == "W"] for x in set(where)}
    reads = [i for i in range(n) if directions[i] == "R"]
    for orders in product(*(permutations(found) for _, found in sorted(writes.items()))):
        rank = {i: k + 1 for order in orders for k, i in enumerate(order)}
        for sources in product(*(range(len(writes[where[r]]) + 1) for r in reads)):
            value = rank | dict(zip(reads, sources, strict=True))
            if _is_critical(events, directions, where, value):
                threads: list[list[tuple[str, int, int]]] = [[] for _ in range(events[-1][0] + 1)]
                for i, (t, _) in enumerate(events):
                    threads[t].append((directions[i], where[i], value[i]))
                yield threads


def _rounds(path: tuple[int, ...], after: dict[int, list[int]]) -> Iterator[tuple[int, ...]]:
    """The ways to go on from ``path`` once through all events and back to its first."""
    if len(path) == len(after) and path[0] in after[path[-1]]:
        yield path
    for i in after[path[-1]]:
        if i not in path:
            yield from _rounds((*path, i), after)


def _is_critical(
    events: list[tuple[int, int]], directions: tuple[str, ...], where: tuple[int, ...], value: dict[int, int]
) -> bool:
    n = len(events)

    def communicates(i: int, j: int) -> bool:
        """rf, fr, or co to any later write, between different threads."""
        if where[i] != where[j] or events[i][0] == events[j][0] or "W" not in (directions[i], directions[j]):
            return False
        if directions[j] == "R":
            return value[i] == value[j]
        return value[i] < value[j]

    if any(i != j and events[i][0] == events[j][0] and where[i] == where[j] for i in range(n) for j in range(n)):
        return False
    after = {
        i: [j for j in range(n) if communicates(i, j) or (events[i][0] == events[j][0] and events[i][1] < events[j][1])]
        for i in range(n)
    }
    for cycle in _rounds((0,), after):
        steps = [(cycle[k], cycle[(k + 1) % n]) for k in range(n)]
        if any(
            events[i][0] == events[j][0] and events[i][1] == 0 and (i, j) not in steps
            for i in range(n)
            for j in range(n)
            if i != j
        ):
            continue
        # Of three accesses of a location in a row, the first and the last must not communicate, or say it in one step.
        threes = [(cycle[k - 1], cycle[k], cycle[(k + 1) % n]) for k in range(n)]
        if any(where[a] == where[b] == where[c] and a != c and communicates(a, c) for a, b, c in threes):
            continue
        groups = [where[i] for i in cycle]
        if sum(groups[k] != groups[k - 1] for k in range(n)) == len(set(groups)):  # each location once, in a row
            return True
    return False


@pytest.mark.parametrize(("threads", "accesses"), [(2, 4), (3, 5), (3, 6), pytest.param(4, 6, marks=pytest.mark.slow)])
def test_no_cycle_is_missing(threads: int, accesses: int) -> None:
    family = Family(threads, accesses, ("weak",))
    made = [
        signature(litmus(cycle))
        for cycle in every(family, list(shapes(family)))
        if len(cycle.threads) == threads and len(cycle.edges) == accesses
    ]
    found = {
        least([tuple((f"{d}weakNone", x, v) for d, x, v in body) for body in execution])
        for execution in critical(threads, accesses)
    }
    assert len(made) == len(set(made)) and set(made) == found and len(found) > 2


def test_no_order_is_missing() -> None:
    """Every program with four accesses in two threads that is a critical cycle, with every order and scope."""
    chosen = Family(orders=("weak", "relaxed", "acquire", "release"), scopes=("cta", "sys"))
    made = [signature(litmus(cycle)) for cycle in every(chosen, list(shapes(chosen)))]
    scoped = {"R": ("relaxed", "acquire"), "W": ("relaxed", "release")}
    words = {d: ["weakNone", *(f"{o}{s}" for o in scoped[d] for s in ("cta", "sys"))] for d in "RW"}
    found = set()
    for execution in critical(2, 4):
        flat = [(t, event) for t, body in enumerate(execution) for event in body]
        for orders in product(*(words[event[0]] for _, event in flat)):
            bodies: list[list[tuple[str, int, int]]] = [[], []]
            for (t, (d, x, v)), order in zip(flat, orders, strict=True):
                bodies[t].append((d + order, x, v))
            found.add(least([tuple(body) for body in bodies]))
    assert len(made) == len(set(made)) == 2850 and set(made) == found


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_what_is_drawn_is_of_the_family(seed: int) -> None:
    one = next(drawn(SMALL, SMALL_SHAPES, seed))
    assert one in all_small() and remade(one) in all_small()


SMALL = Family(
    2, 4, ("relaxed", "acquire", "acq_rel", "fence.sc"), ("gpu",), ("cta", "gpu"), ("po", "rmw", "bar", "alias")
)
SMALL_SHAPES = list(shapes(SMALL))


@cache
def all_small() -> frozenset[Cycle]:
    return frozenset(every(SMALL, SMALL_SHAPES))


def remade(cycle: Cycle) -> Cycle:
    """A cycle that is the same but for where it begins."""
    return canonical(rotations(cycle)[-1])


def test_all_of_a_family_is_drawn_once() -> None:
    found = list(drawn(SMALL, SMALL_SHAPES, 7))
    assert len(found) == len(set(found)) == len(all_small()) and set(found) == all_small()
    assert list(drawn(SMALL, SMALL_SHAPES, 7)) == found != list(drawn(SMALL, SMALL_SHAPES, 8))
    assert all(fault(cycle) is None and canonical(cycle) == cycle for cycle in found)


def renamed(test: Test, order: tuple[int, ...]) -> tuple[object, ...]:
    """The text of a test with its threads in this order, and variables, addresses of them and places as they first
    occur; registers are named by their place in the thread already."""
    variables: dict[str, str] = {}
    first: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        key = test.objects[match[0]].virtual or match[0] if match[0] in test.objects else ""
        if not key:
            return match[0]
        physical = test.objects[match[0]].alias_of or match[0]
        variable = variables.setdefault(physical, f"v{len(variables)}")
        return variable if first.setdefault(physical, match[0]) == match[0] else f"{variable}'"

    threads = [
        tuple(re.sub(r"[a-z][a-z0-9]*(?=[\]+,;]|$)", name, op.source.text) for op in test.threads[t].body)
        for t in order
    ]
    places = [
        (test.threads[t].placement.gpu, test.threads[t].placement.cluster, test.threads[t].placement.cta) for t in order
    ]
    alike = tuple(tuple(a[k] == b[k] and a[k] is not None for k in range(3)) for a in places for b in places)
    where = {f"P{t}:": f"P{k}:" for k, t in enumerate(order)}
    assert test.condition is not None
    asked = [re.sub(r"P[0-9]:", lambda m: where[m[0]], part.strip("() ")) for part in test.condition.text.split("/\\")]
    asked = [re.sub(r"^[a-z][a-z0-9]*", lambda m: variables.get(m[0], m[0]), part) for part in asked]
    return (*threads, alike, tuple(sorted(asked)))


def test_no_two_tests_are_the_same_but_for_names() -> None:
    """Of a family with atomics, barriers, fences, aliases and placements: by their texts."""
    found: set[object] = set()
    for cycle in all_small():
        (test,) = read(litmus(cycle), "x.litmus")
        mine = {renamed(test, order) for order in permutations(range(len(test.threads)))}
        assert not mine & found, cycle.name
        found |= mine
        (turned,) = read(litmus(rotations(cycle)[-1]), "x.litmus")
        assert renamed(turned, (0, 1)) in mine


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=7), st.sampled_from(["", "@cta", "@sys", "@000,001", "@", "@9"]))
def test_words_are_a_cycle_or_an_error(words: list[str], where: str) -> None:
    try:
        cycle = parse(" ".join(words) + where)
    except PtxmmError as error:
        assert error.kind == "usage" and error.column is not None and error.column >= 1
    else:
        assert parse(cycle.name) == cycle and read(litmus(cycle), "x.litmus")


def test_scope_trees() -> None:
    """As many as there are ways to nest three and four threads in three levels, threads being told apart."""
    assert [len(places(n, ("cta", "sys", "mixed"))) for n in (2, 3, 4)] == [2, 5, 15]  # the partitions of a set
    assert [place_name(found) for found in places(2, ("mixed",))] == ["cta", "cluster", "gpu", "sys"]
    every_tree = places(3, ("mixed",))
    assert len(set(every_tree)) == len(every_tree) == 4 + 3 * 6  # all alike, or two nearer to each other


@pytest.mark.parametrize("word", ["orders", "scopes", "placements", "edges"])
def test_a_family_of_unknown_words(word: str) -> None:
    with pytest.raises(PtxmmError, match="there is no far"):
        checked(replace(Family(), **{word: ("far",)}))


# -- what tests say ----------------------------------------------------------------------------------------------------


def observation(cycle: Cycle, model: str = "ptx-8.5") -> str | None:
    (test,) = read(litmus(cycle), "generated.litmus")
    return check(test, model_named(model), engine="both").observation


MEANINGFUL = [cycle for cycle, (_, *word) in zip(RICH_SAMPLE, SAMPLED, strict=True) if word]


def test_what_is_sampled(golden: Callable[[str, str], None]) -> None:
    lines = [cycle.name + " meaningful" * meaningful(cycle) for cycle in sampled(RICH, 300)]
    golden("cycles-sampled.txt", "".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("cycle", MEANINGFUL[:40], ids=lambda cycle: cycle.name)
def test_sampled_tests_under_both_engines(cycle: Cycle) -> None:
    found = check(read(litmus(cycle), "generated.litmus")[0], model_named("ptx-8.5"), engine="both")
    assert found.status in ("complete", "undefined")
    assert observation(weakest(cycle), "sc") == "never"
    assert not any("alias" in name or "b64" in name for name in weakest(cycle).name.split("+"))


def test_conditions_that_say_nothing() -> None:
    assert meaningful(parse("MP")) and meaningful(parse("CoRR")) and meaningful(parse("BarsWR Fre@cta"))
    assert (
        not meaningful(parse("Coe PosWW Coe Coe Coe")) or observation(parse("Coe PosWW Coe Coe Coe"), "sc") == "never"
    )
    for cycle in sampled(Family(edges=("pos", "rmw"), orders=("weak", "relaxed")), 10):
        assert meaningful(cycle) == (remark_on(cycle, Wanted(True), ()) is not None)


def test_interesting() -> None:
    """The one that lacks an acquire is at the border; the one that lacks two orders is not."""
    wanted = Wanted(True, interesting=True)
    said = remark_on(parse("PodWW release.gpu Rfe relaxed.gpu PodRR Fre"), wanted, ())
    assert said == "ptx-8.5 allows it, but not PodWW+release.gpu+Rfe+acquire.gpu+PodRR+Fre@gpu."
    assert remark_on(parse("PodWW relaxed.gpu Rfe relaxed.gpu PodRR Fre"), wanted, ()) is None
    assert remark_on(parse("PodWW release.gpu Rfe acquire.gpu PodRR Fre"), wanted, ()) is None
    assert remark_on(parse("PodWW release.cta Rfe acquire.gpu PodRR Fre"), wanted, ()) is not None
    assert remark_on(
        parse("relaxed.gpu PodWR.fence.sc.gpu relaxed.gpu Fre relaxed.gpu PodWR relaxed.gpu Fre"), wanted, ()
    )


def test_separating() -> None:
    wanted = Wanted(True, separate=("ptx-8.5", "ptx-8.5[vector=whole]"))
    assert (
        remark_on(parse("relaxed.gpu VecWW relaxed.gpu Rfe relaxed.gpu VecRR relaxed.gpu Fre"), wanted, ()) is not None
    )
    assert remark_on(parse("MP"), wanted, ()) is None


def test_what_is_stronger() -> None:
    cycle = parse("PodWW.fence.acq_rel.cta relaxed.cta Rfe weak PodRR Fre")
    names = {one.name for one in stronger(cycle)}
    assert "PodWW.fence.sc.cta+relaxed.cta+Rfe+PodRR+Fre@gpu" in names
    assert "PodWW.fence.acq_rel.sys+relaxed.cta+Rfe+PodRR+Fre@gpu" in names
    assert "PodWW.fence.acq_rel.cta+release.cta+Rfe+PodRR+Fre@gpu" in names
    assert "PodWW.fence.acq_rel.cta+relaxed.gpu+Rfe+PodRR+Fre@gpu" in names
    assert "PodWW.fence.acq_rel.cta+relaxed.cta+Rfe+acquire.cluster+PodRR+Fre@gpu" in names
    assert all(fault(one) is None and one != cycle for one in stronger(cycle))


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_folder_is_made_as_a_whole(run_command: Run, tmp_path: Path) -> None:
    arguments = ("generate", "--sample", "12", "--seed", "3", "--jobs", "1", "-o")
    for name in ("one", "two"):
        assert run_command(*arguments, str(tmp_path / name)).code == 0
    one, two = ({p.name: p.read_text() for p in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two and len(one) == 12 and all(name.endswith(".litmus") for name in one)
    assert [p.name for p in tmp_path.iterdir()].count("one") == 1 and len(list(tmp_path.iterdir())) == 2
    assert all(read(text, name)[0].name + ".litmus" == name for name, text in one.items())
    again = run_command(*arguments, str(tmp_path / "one"))
    assert again.code == 2 and "this is there already" in again.err


def test_one_stream(run_command: Run) -> None:
    ran = run_command("generate", "MP", "Rfe PodRR Fre PodWW", "SB@cta")
    assert ran.code == 0 and ran.out == litmus(parse("MP")) + "\n" + litmus(parse("SB@cta"))
    assert run_command("generate", "--names", "MP").out == "PodWW+Rfe+PodRR+Fre@gpu\n"


def test_a_family(run_command: Run) -> None:
    ran = run_command("generate", "--names", "--jobs", "2")
    assert ran.code == 0 and len(ran.out.split()) == 378 == len(set(ran.out.split()))
    mixed = run_command("generate", "--names", "--edges", "pos", "--orders", "weak", "--placements", "cta,sys")
    names = mixed.out.split()
    assert {"Rfe+PosRR+Fre@cta", "Rfe+PosRR+Fre@sys", "Rfe+PosRW+Coe@cta"} <= set(names)


def test_an_empty_family(run_command: Run) -> None:
    ran = run_command("generate", "--edges", "bar", "--placements", "gpu")
    assert (ran.code, ran.out, ran.err) == (0, "", "there is no such test\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("MP", "--threads", "3"), "cycles are given, and a family is described"),
        (("--orders", "strong"), "--orders: there is no strong"),
        (("--separate", "ptx-8.5"), "--separate ptx-8.5: two models"),
        (("--separate", "ptx-8.5,ptx-9"), "ptx-9"),
        (("MP Rfe",), "this is no cycle"),
    ],
)
def test_bad_usage(run_command: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = run_command("generate", *arguments)
    assert ran.code == 2 and said in ran.err and not ran.out and "Traceback" not in ran.err


def test_long_names(run_command: Run, tmp_path: Path) -> None:
    word = "relaxed.cluster"
    cycle = " ".join(f"{word}.alias PodWR.fence.acq_rel.cluster {word}.alias Fre" for _ in range(4))
    assert run_command("generate", cycle, "-o", str(tmp_path / "f")).code == 0
    (path,) = (tmp_path / "f").iterdir()
    assert len(path.name) < 256 and read(path.read_text(), "x.litmus")[0].name == parse(cycle).name


def test_the_description() -> None:
    (test,) = read(litmus(parse("PodWW.fence.sc.gpu Rfe acquire.gpu PodRR.addr Fre@cta")), "x.litmus")
    assert test.description == (
        "MP of 2 threads in one CTA. P0 writes x[0], then writes y after fence.sc.gpu; P1 reads from this write. "
        "P1 reads y (acquire.gpu), then reads x[0] at an address that depends on what it read; the write of P0 is "
        "later than the one read from. The condition asks for all of this, a cycle that no sequentially consistent "
        "execution has."
    )
