"""Data races: every racy pair and no other, the reasons, and executions that show them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxmm import parse
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import RacesResult, race_flags, races
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import read
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Atomic, Branch, Load, Store
from ptxmm.render.races import text
from ptxmm.render.style import Style
from tests import random_programs, reference, reference_axioms
from tests.documents import entry
from tests.reference_dependencies import TooSlow
from tests.reference_expressions import Impossible
from tests.reference_frame import Frame
from tests.reference_relations import Pairs as Edges
from tests.reference_simulation import Meeting
from tests.support import ROOT, model_named, parse_one, run
from tests.tally import Tally

Golden = Callable[[str, str], None]
LITMUS = sorted((ROOT / "litmus").rglob("*.litmus"))
BUGS = [path for path in LITMUS if path.parent.name == "bugs"]
Pairs = set[tuple[tuple[int, int], tuple[int, int]]]


def found(test: Test, model: str = "ptx-8.5", seconds: float = 30, most: int = 100) -> RacesResult:
    limits = Limits(deadline=time.monotonic() + seconds)
    return races(test, model_named(model), limits=limits, most=most)


def two(first: str, second: str, declarations: str = ".global .u32 x = 0;", places: str = "cta 0/cta 1") -> Test:
    """A test of two threads."""
    one, other = places.split("/")
    threads = f"P0 @ {one} {{ {first} }}\nP1 @ {other} {{ {second} }}\n"
    return parse_one(f"PTX two\n{{\n{declarations}\n}}\n{threads}exists (true)\n".replace("exists (true)\n", ""))


def pairs(result: RacesResult, test: Test) -> Pairs:
    """The racy pairs as (thread, index) of both instructions."""
    number = {thread.name: i for i, thread in enumerate(test.threads)}
    return {((number[r.first.thread], r.first.index), (number[r.second.thread], r.second.index)) for r in result.races}


# What fails.


@pytest.mark.parametrize(
    ("first", "second", "places", "fails"),
    [
        ("st.global.u32 [x], 1;", "ld.global.u32 r0, [x];", "cta 0/cta 1", ["order: P0:5 and P1:6 are weak"]),
        (
            "st.global.u32 [x], 1;",
            "ld.relaxed.gpu.global.u32 r0, [x];",
            "cta 0/cta 1",
            ["order: P0:5 is weak"],
        ),
        (
            "st.relaxed.cta.global.u32 [x], 1;",
            "ld.relaxed.gpu.global.u32 r0, [x];",
            "cta 0/cta 1",
            ["scope: the scope .cta of P0:5 does not include P1"],
        ),
        (
            "st.relaxed.gpu.global.u32 [x], 1;",
            "ld.relaxed.gpu.global.u32 r0, [x];",
            "cta 0, gpu 0/cta 0, gpu 1",
            [
                "scope: the scope .gpu of P0:5 does not include P1",
                "scope: the scope .gpu of P1:6 does not include P0",
            ],
        ),
        (
            "st.relaxed.gpu.global.u16 [x], 1;",
            "ld.relaxed.gpu.global.u32 r0, [x];",
            "cta 0/cta 1",
            ["overlap: they overlap, but not completely: bytes 0 to 1 of x and bytes 0 to 3 of x"],
        ),
        (
            "st.relaxed.gpu.global.u8 [x], 1;",
            "ld.relaxed.cta.global.u16 r0, [x];",
            "cta 0/cta 1",
            [
                "scope: the scope .cta of P1:6 does not include P0",
                "overlap: they overlap, but not completely: byte 0 of x and bytes 0 to 1 of x",
            ],
        ),
    ],
)
def test_conditions(first: str, second: str, places: str, fails: list[str]) -> None:
    result = found(two(first, second, places=places))
    (race,) = result.races
    words = [f"{c.name}: {c.text}" for c in race.fails]
    assert len(words) == len(fails)
    assert all(word.startswith(start) for word, start in zip(words, fails, strict=True))
    assert race.mixed is any(c.name == "overlap" for c in race.fails)
    assert result.finding


def test_the_proxy() -> None:
    (test,) = read(ROOT / "litmus" / "bugs" / "te-proxy-fence-wrong-place-buggy.litmus")
    (race,) = found(test).races
    assert [c.name for c in race.fails] == ["order", "proxy"]
    assert race.fails[1].text == "P0:12 uses the generic proxy, P1:13 the async proxy"


def test_virtual_aliases() -> None:
    """8.7 (3): operations through two virtual addresses do not overlap completely."""
    declarations = ".global .u32 x = 0; y @ generic aliases x;"
    test = two("st.relaxed.gpu.global.u32 [x], 1;", "ld.relaxed.gpu.global.u32 r0, [y];", declarations)
    (race,) = found(test).races
    assert [c.text for c in race.fails] == ["they access the same bytes through different virtual addresses, x and y"]


def test_a_thread_races_with_itself() -> None:
    """A copy that nothing waits for is not in program order with what comes after it (8.9.1.1)."""
    declarations = ".shared .align 16 .u32 s[4] = {0, 0, 0, 0}; .global .align 16 .u32 g[4] = {1, 0, 0, 0};"
    test = two("cp.async.ca.shared.global [s], [g], 4; ld.shared.u32 r0, [s];", "mov.u32 r0, 0;", declarations)
    assert pairs(found(test), test) == {((0, 0), (0, 1))}


def test_atomics_that_are_morally_strong_do_not_race() -> None:
    result = found(two("atom.add.gpu.u32 r0, [x], 1;", "atom.add.gpu.u32 r0, [x], 1;"))
    assert (result.races, result.race_free, result.finding) == ((), True, False)


def test_interchangeable_threads_each_have_their_pair() -> None:
    """No order of equal threads is left out: each of them races with each other."""
    code = "st.global.u32 [x], 1; ld.global.u32 r0, [x];"
    threads = "".join(f"P{i} @ cta {i} {{ {code} }}\n" for i in range(3))
    test = parse_one(f"PTX three\n{{\n.global .u32 x = 0;\n}}\n{threads}")
    expected = {
        ((a, i), (b, j)) for a in range(3) for b in range(a + 1, 3) for i in (0, 1) for j in (0, 1) if (i, j) != (1, 1)
    }
    assert pairs(found(test), test) == expected


# Honest answers.


def test_the_limit() -> None:
    test = two("st.global.u32 [x], 1; st.global.u32 [x], 2;", "ld.global.u32 r0, [x];")
    result = found(test, most=1)
    assert (len(result.races), result.listed, result.finding) == (1, False, True)
    assert {note.kind for note in result.notes} == {"limit"}
    assert len(found(test).races) == 2


def test_a_loop_that_goes_on() -> None:
    loop = "a: atom.add.gpu.u32 r0, [x], 1; setp.lt.u32 p, r0, 100; @p bra a; st.global.u32 [y], 1;"
    test = two(loop, "ld.global.u32 r0, [y];", ".global .u32 x = 0; .global .u32 y = 0;")
    result = found(test)
    assert (result.races, result.status, result.race_free, result.finding) == ((), "bounded", None, None)


def test_a_deadlock_is_not_race_free() -> None:
    (test,) = read(ROOT / "litmus" / "bugs" / "flashmla-arrive-count-buggy.litmus")
    result = found(test)
    if not result.races:
        assert result.race_free is None
        assert result.notes


STORES = "st.global.u32 [x], 1;"
SPIN = "L: ld.relaxed.gpu.global.u32 r9, [f]; setp.eq.u32 p, r9, 0; @p bra L;"
DATA = ".global .u32 x = 0; .global .u32 y = 0; .global .u32 f = 0;"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (STORES, f"ld.relaxed.gpu.global.u32 r0, [y]; setp.eq.u32 q, r0, 0; @q bra E; {STORES} {SPIN} E:"),
        (STORES, f"{STORES} L: bra L;"),
        (f"{STORES} bar.sync 0;", f"{STORES} {SPIN} bar.sync 0;"),
        (f"{STORES} bar.sync 0; st.relaxed.gpu.global.u32 [f], 1;", f"{STORES} {SPIN} bar.sync 0;"),
        (STORES, "L: ld.global.u32 r0, [x]; bra L;"),
    ],
)
def test_a_race_in_an_execution_that_never_ends(first: str, second: str) -> None:
    """Nobody writes f before P1 reads it: no execution with the race reaches its end. In the first case y is always 0
    as well, and the race is not there."""
    test = two(first, second, DATA, "cta 0/cta 0")
    result = found(test)
    if "q, r0" in second:
        assert result.race_free
        test = two(first + " st.relaxed.gpu.global.u32 [y], 1;", second, DATA, "cta 0/cta 0")
        result = found(test)
    assert (len(result.races), result.status, result.race_free, result.listed) == (1, "complete", False, True)
    assert {f"{result.races[0].locations[i]}" for i in (0, 1)} == {"x"}


def test_a_thread_that_waits_for_a_flag_is_race_free() -> None:
    """The executions in which P1 spins for ever show nothing that those in which it does not would not show; nor do
    those in which P0 waits for it at the barrier."""
    wait = SPIN.replace("relaxed", "acquire")
    flag = f"{STORES} st.release.gpu.global.u32 [f], 1;"
    for barrier in ("", " bar.sync 0;"):
        result = found(two(flag + barrier, f"{wait} ld.global.u32 r0, [x];{barrier}", DATA, "cta 0/cta 0"))
        assert (result.race_free, result.notes, result.listed) == (True, (), True)


def test_a_thread_that_spins_has_not_exited() -> None:
    """P0 waits at the second barrier for P1, which waits for what P0 writes behind it. A thread that exits would not be
    waited for (A27). Nothing happens before the store, so there is no race."""
    first = "bar.sync 0; bar.sync 0; st.global.u32 [f], 1;"
    result = found(two(first, f"bar.sync 0; {SPIN} bar.sync 0;", DATA, "cta 0/cta 0"))
    assert result.races == ()


def test_a_wait_at_an_mbarrier_may_go_on_for_ever() -> None:
    """Nobody arrives a second time, so that the store after the wait is not reached, but the one before it is."""
    declarations = ".shared .b64 m @ cta 0 = mbarrier(2); .shared .u32 x @ cta 0 = 0;"
    spin = "L: mbarrier.test_wait.shared.b64 p, [m], t; @!p bra L;"
    second = f"mbarrier.arrive.shared.b64 t, [m]; st.shared.u32 [x], 2; {spin} st.shared.u32 [x], 3;"
    result = found(two("st.shared.u32 [x], 1;", second, declarations, "cta 0/cta 0"))
    assert result.race_free is False
    assert [(r.first.text, r.second.text) for r in result.races] == [("st.shared.u32 [x], 1", "st.shared.u32 [x], 2")]


def test_executions_without_meaning_are_not_listed() -> None:
    """P1 counts 64 threads at barrier 1, and P2 counts 96 there."""
    test = parse_one(
        "PTX counts\n{ .global .u32 x = 0; }\n"
        "P0 @ cta 0 { st.global.u32 [x], 1; }\n"
        "P1 @ cta 0 { st.global.u32 [x], 2; bar.sync 1, 64; }\n"
        "P2 @ cta 0 { bar.sync 1, 96; }\n"
    )
    result = found(test)
    assert (result.status, result.race_free, result.listed) == ("undefined", None, False)
    assert "has no meaning" in "\n".join(text(result, Style(False)))


def test_the_time_limit() -> None:
    test = two("st.global.u32 [x], 1;", "ld.global.u32 r0, [x];")
    result = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() - 1))
    assert (result.status, result.finding, result.listed) == ("timeout", None, False)


def test_unknown_initial_values() -> None:
    """A race on a path that only some initial value takes."""
    code = "ld.shared.u32 r0, [s]; setp.eq.u32 p, r0, 5; @p st.global.u32 [x], 1;"
    test = two(code, "ld.global.u32 r0, [x];", ".global .u32 x = 0; .shared .u32 s;")
    result = found(test)
    (race,) = result.races
    assert race.first.text == "@p st.global.u32 [x], 1"
    assert race.execution.threads[0].steps[0].accesses[0].value == 5


def test_mixed_sizes_are_undefined() -> None:
    test = two("st.relaxed.gpu.global.u16 [x], 1;", "ld.relaxed.gpu.global.u32 r0, [x];")
    result = found(test)
    assert (result.status, result.finding) == ("undefined", True)


@pytest.mark.parametrize("name", ["ptx-6.0", "ptx-7.5", "sc"])
def test_models_that_do_not_speak_of_races(name: str) -> None:
    test = two("st.global.u32 [x], 1;", "ld.global.u32 r0, [x];")
    with pytest.raises(PtxmmError) as caught:
        found(test, name)
    assert caught.value.kind == "unsupported"
    assert "--model ptx-8.5" in (caught.value.hint or "")


def test_a_model_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "own.cat"
    path.write_text('"Two writes race"\nflag ~empty ((W*W) & loc & ext) \\ (IW*_ | _*IW) as data-race\n')
    model = load(str(path))
    test = two("st.relaxed.gpu.global.u32 [x], 1;", "st.relaxed.gpu.global.u32 [x], 2;")
    assert list(race_flags(model, test)) == ["data-race"]
    (race,) = races(test, model).races
    assert race.fails == ()  # they are morally strong; this model does not ask
    path.write_text('"A set"\nflag ~empty W as data-race\n')
    with pytest.raises(PtxmmError):
        race_flags(load(str(path)), test)


# The same as everything else says.


def raised(test: Test) -> frozenset[str]:
    """The flags that the explicit engine finds."""
    from ptxmm.engines.result import Observed
    from ptxmm.program.unspecified.unknown import assignments

    limits = Limits(deadline=time.monotonic() + 20)
    found: frozenset[str] = frozenset()
    for assigned in assignments(test):
        search = run("enumerate", assigned.test, model_named("ptx-8.5"), Observed((), ()), limits)
        if search.timeout:
            pytest.skip("the explicit engine takes too long")
        found |= search.flags
    return found


def agrees(path: Path) -> None:
    for test in read(path):
        try:
            result = found(test)
        except PtxmmError as error:
            assert error.kind == "unsupported"
            continue
        flags = raised(test)
        assert bool(result.races) == ("data-race" in flags)
        assert any(race.mixed for race in result.races) == ("mixed-size-race" in flags)
        assert all(race.fails for race in result.races)
        assert entry("races", result)
        assert text(result, Style(False))


@pytest.mark.parametrize("path", BUGS[::3], ids=lambda path: path.stem)
def test_bugs(path: Path) -> None:
    agrees(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", LITMUS, ids=lambda path: path.stem)
def test_litmus(path: Path) -> None:
    agrees(path)


def accesses(test: Test) -> list[list[int]]:
    """The indices of the memory accesses of each thread."""
    return [[n for n, op in enumerate(t.body) if isinstance(op, Load | Store | Atomic)] for t in test.threads]


def reference_pairs(test: Test, monkeypatch: pytest.MonkeyPatch) -> Pairs:
    """The racy pairs of all executions, by the plain set comprehensions of ``tests/reference*.py``."""
    everything: Pairs = set()
    indices = accesses(test)

    def site(x: Frame, number: int) -> tuple[int, int]:
        """The reference counts the steps of a thread, and leaves out those without events."""
        thread = x.events[number].thread
        assert thread is not None
        steps = sorted({e.step for e in x.events if e.thread == thread and e.cell is not None})
        return thread, indices[thread][steps.index(x.events[number].step)]

    def flags(x: Frame, rf: Edges, bc: Edges, cause: Edges, met: Meeting) -> frozenset[str]:
        cause = reference_axioms.precedes(x, cause)
        for a, b in x.ovl:
            if (
                a != b
                and (a in x.W or b in x.W)
                and a not in x.IW
                and b not in x.IW
                and (a, b) not in cause
                and (b, a) not in cause
                and (a, b) not in x.ms
            ):
                sites = sorted([site(x, a), site(x, b)])
                everything.add((sites[0], sites[1]))
        return frozenset()

    monkeypatch.setattr(reference_axioms, "flags", flags)
    for _ in reference.executions(test, "ptx-8.5", seconds=5):
        pass
    return everything


def deadlocks(test: Test) -> bool:
    """Whether some execution waits for ever at a barrier."""
    return "deadlock" in check(test, model_named("ptx-8.5"), engine="enumerate").flags


def compare(seeds: range, monkeypatch: pytest.MonkeyPatch, tally: Tally) -> None:
    compared = racy = 0
    for seed in seeds:
        program = random_programs.program(random.Random(seed), "ptx-8.5")
        test = parse_one(program.text())
        if any(op.guard is not None or isinstance(op, Branch) for t in test.threads for op in t.body):
            continue  # an access is known by its number among those of the thread
        try:
            expected = reference_pairs(test, monkeypatch)
        except (TooSlow, Impossible):
            continue
        listed = pairs(found(test), test)
        assert listed >= expected, program.text()
        assert listed == expected or deadlocks(test), program.text()  # the reference has executions that end
        compared, racy = compared + 1, racy + bool(expected)
    tally.notes.append(f"racy pairs of {compared} random programs as in the reference, {racy} of them racy")
    assert compared > len(seeds) // 4


def test_random_programs(monkeypatch: pytest.MonkeyPatch, tally: Tally) -> None:
    compare(range(60), monkeypatch, tally)


@pytest.mark.slow
def test_many_random_programs(monkeypatch: pytest.MonkeyPatch, tally: Tally) -> None:
    compare(range(1000, 3000), monkeypatch, tally)


def test_golden(golden: Golden) -> None:
    (test,) = parse((ROOT / "litmus/bugs/te-proxy-fence-wrong-place-buggy.litmus").read_text())
    lines = text(found(test), Style(False))
    golden("races-proxy.txt", "\n".join(line for line in lines if not line.startswith("Time ")) + "\n")
