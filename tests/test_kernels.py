"""Random kernels: what is left of them for a thread ends where the kernel ends, and loops that spin lose nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice

import pytest
from msgspec.structs import replace

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.read import parse_ptx
from ptxmm.formats.modules.specialize import Residue
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Alu, Branch, Imm, Reg, Source
from tests.random_kernels import Final, Kernel, condition, final, kernel, observed, text
from tests.random_spins import program
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

UNROLL = 45
LOADS = 25
INSTRUCTIONS = 700
IDEMPOTENT = "ptxmm.program.shared.broadcasts.idempotent_atomics"
"""Where it is asked which atomics may be left out."""
USUAL, HIGH = 3, 4
SECONDS = 5
"""For a program; those that a share for every run decides take a tenth of it, and one that takes longer is left out."""


def ended(first: int) -> Iterator[tuple[Kernel, Final]]:
    """Kernels that end soon, with where they end."""
    for number in count(first):
        made = kernel(number)
        end = final(made)
        if end is not None and end.loads <= LOADS:
            yield made, end


# -- one thread ----------------------------------------------------------------------------------------------------


def _ends_there(made: Kernel, end: Final, engine: str, seconds: float) -> bool:
    """Whether the checker comes to the same end; False if it takes too long, a value has too many cases, or a register
    that some path might leave unwritten is computed with: it is told as ``bounded`` then."""
    (test,) = parse_ptx(text(made, condition(end, observed(made))), f"{made.number}.ptx")
    if len(test.threads[0].body) > INSTRUCTIONS:
        return False
    limits = Limits(unroll=UNROLL, deadline=time.monotonic() + seconds)
    try:
        result = check(test, model_named("ptx-8.5"), engine=engine, limits=limits, enumerate_all=False)
    except PtxmmError as error:
        assert error.kind == "unsupported", error
        return False
    if result.status == "timeout":
        return False
    if result.status == "bounded" and any(name.startswith("uninit_") for name in test.objects):
        assert result.holds is None, f"kernel {made.number}"
        return False
    assert (result.holds, result.status, result.flags) == (True, "complete", ()), f"kernel {made.number}"
    return True


def _one_thread(first: int, many: int, tally: Tally, seconds: float) -> None:
    found = [_ends_there(made, end, "both" if n % 4 == 0 else "z3", seconds) for n, (made, end) in
             enumerate(islice(ended(first), many))]  # fmt: skip
    tally.notes.append(f"random kernels of one thread: {sum(found)} of {many} end as the interpreter says")
    assert sum(found) >= 0.9 * many


def test_kernels_end_where_they_end(tally: Tally) -> None:
    _one_thread(0, 50, tally, SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_many_kernels_end_where_they_end(share: int, tally: Tally, shift: int) -> None:
    _one_thread(2_000 * share + shift, 250, tally, 20)


def test_kernels_that_do_not_end_are_read() -> None:
    for number in range(150):
        made = kernel(number)
        if final(made) is None:
            parse_ptx(text(made, "forall (out[0] == 0)"), f"{number}.ptx")


# -- the whole kernel, and what is left of it -----------------------------------------------------------------------


def _whole(code: Code, flow: object, known: Mapping[str, int], *_: object) -> Residue:
    """The kernel as it is, with the values that its thread starts with in registers."""
    source = Source(code.body[0].source.span, "mov")
    moves = [Alu("mov", code.registers[name], Reg(name), (Imm(value),), source) for name, value in known.items()]
    shifted = [replace(op, target=op.target + len(moves)) if isinstance(op, Branch) else op for op in code.body]
    return Residue((*moves, *shifted), tuple(range(-len(moves), len(code.body))))


@contextmanager
def unspecialized() -> Iterator[None]:
    """Threads are the whole kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ptxmm.formats.modules.threads.specialize", _whole)
        patch.setattr("ptxmm.formats.modules.module.pruned", lambda code, observed: code)
        yield


def _compare_whole(first: int, many: int, block: int, tally: Tally, seconds: float) -> None:
    compared = 0
    for made, end in islice(ended(first), many):
        if end.loads > 8 // block or len(made.body) > 40 // block:
            continue
        module = text(made, "forall (out[0] == 0)", block)
        (left,) = parse_ptx(module, f"{made.number}.ptx")
        with unspecialized():
            (whole,) = parse_ptx(module, f"{made.number}.ptx")
        answers = [_memory(test, seconds) for test in (left, whole)]
        if None not in answers:
            compared += 1
            assert answers[0] == answers[1], f"kernel {made.number}"
    tally.notes.append(f"random kernels of {block} threads, whole and specialised: {compared} compared")
    assert compared >= many // 4


def _memory(test: Test, seconds: float) -> set[tuple[tuple[str, object], ...]] | None:
    """The final states of memory, None if the search takes too long."""
    limits = Limits(unroll=UNROLL, deadline=time.monotonic() + seconds)
    try:
        result = check(test, model_named("ptx-8.5"), limits=limits)
    except PtxmmError as error:
        assert error.kind == "unsupported", error
        return None
    if result.status != "complete":
        return None
    return {tuple(sorted(outcome.memory.items())) for outcome in result.outcomes}


@pytest.mark.parametrize("block", [1, 2])
def test_whole_kernels_end_there_too(block: int, tally: Tally) -> None:
    _compare_whole(1_000, 20, block, tally, SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2])
def test_many_whole_kernels_end_there_too(block: int, tally: Tally, shift: int) -> None:
    _compare_whole(40_000 + shift, 200, block, tally, 10)


# -- loops that spin -----------------------------------------------------------------------------------------------


@contextmanager
def no_idempotent_atomics() -> Iterator[None]:
    """Every atomic counts as a write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IDEMPOTENT, lambda test: (frozenset(),) * len(test.threads))
        yield


def _spin(number: int, engine: str) -> str:
    """What could be compared of a program: with the bound that is usual, and with a higher one and nothing left out."""
    source = program(number)
    usual = ask(engine, parse_one(source), model_named("ptx-8.5"), seconds=SECONDS, most=400)
    with no_idempotent_atomics():
        unroll = USUAL if usual.bounded else HIGH
        every = ask(engine, parse_one(source), model_named("ptx-8.5"), unroll=unroll, seconds=SECONDS, most=400)
    if not (usual.complete and every.complete):
        return "too long"
    assert every.undefined == usual.undefined, f"program {number}"
    assert every.states <= usual.states, f"program {number}"
    if every.bounded:
        return "nothing else"
    assert every.states == usual.states, f"program {number}"
    return "the same"


def _spins(first: int, many: int, tally: Tally) -> None:
    found = [_spin(number, engine) for number in range(first, first + many) for engine in ("solve", "enumerate")]
    kinds = {kind: found.count(kind) for kind in sorted(set(found))}
    tally.notes.append(f"loops that spin, with and without idempotent atomics: {kinds}")
    assert found.count("nothing else") + found.count("the same") >= many


def test_spin_loops_lose_nothing(tally: Tally) -> None:
    _spins(0, 10, tally)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(3))
def test_many_spin_loops_lose_nothing(share: int, tally: Tally, shift: int) -> None:
    _spins(1_000 * share + shift, 40, tally)


def _race_free(source: str, unroll: int) -> bool | None:
    limits = Limits(unroll=unroll, deadline=time.monotonic() + SECONDS)
    return races(parse_one(source), model_named("ptx-8.5"), limits=limits, most=1).race_free


@pytest.mark.parametrize(("first", "many"), [(0, 12), pytest.param(100, 100, marks=pytest.mark.slow)])
def test_spin_loops_hide_no_race(first: int, many: int) -> None:
    for number in range(first, first + many):
        source = program(number)
        usual = _race_free(source, USUAL)
        with no_idempotent_atomics():
            high = _race_free(source, HIGH)
        assert usual is None or high is None or usual == high, f"program {number}"


WEAK_STORES = """PTX weak-stores
{
  .global .u32 x = 0;
  .global .u32 y = 0;
}
P0 @ cta 0 {
  st.relaxed.gpu.u32 [x], 1;
  st.u32 [x], 2;
  ld.relaxed.gpu.u32 r0, [x];
  st.u32 [x], 5;
  ld.relaxed.gpu.u32 r1, [x];
  st.release.gpu.u32 [y], 1;
}
P1 @ cta 1 {
  L0: ld.acquire.gpu.u32 r1, [y];
  atom.relaxed.gpu.or.b32 r0, [x], 0;
  setp.eq.u32 p0, r1, 0;
  @p0 bra L0;
}
exists (P0:r0 == 1 /\\ P0:r1 == 1 /\\ P1:r0 == 1)
"""
BEHIND = """PTX behind
{
  .global .u32 in[2] = {10, 11};
  .shared .u32 ring @ cta 0 = 99;
  .shared .b64 full @ cta 0 = mbarrier(1);
  .shared .b64 empty @ cta 0 = mbarrier(1);
}
P0 @ cta 0, warp 0 {
  bar.sync 0;
  mbarrier.try_wait.parity.shared::cta.b64 p1, [empty], 1;
  @!p1 bra STUCK;
  mbarrier.arrive.shared::cta.b64 _, [full];
  ld.global.u32 r1, [in+4];
  st.shared.u32 [ring], r1;
  AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 p2, [empty], 0;
  @!p2 bra NEXT;
  ret;
  STUCK:
  NEXT:
  bra AGAIN;
}
P1 @ cta 0, warp 1 {
  bar.sync 0;
  AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 p1, [full], 0;
  @!p1 bra NEXT;
  mbarrier.arrive.shared::cta.b64 _, [empty];
  ld.shared.u32 r1, [ring];
  ret;
  NEXT:
  bra AGAIN;
}
exists (P1:r1 == 11)
"""
UNOBSERVED = """PTX unobserved
{
  .global .u32 d = 0;
  .global .u32 e = 0;
  .global .align 4 .u32 f = 0;
  .global .u32 g = 0;
}
P0 @ cta 0 {
  st.u32 [d], 1;
  st.release.gpu.u32 [f], 1;
  st.u32 [e], 1;
  st.release.gpu.u32 [f], 2;
}
P1 @ cta 1 {
  L0: ld.acquire.gpu.u32 r1, [g];
  atom.relaxed.SCOPE.or.b32 r0, [f], 0;
  setp.eq.u32 p0, r1, 0;
  @p0 bra L0;
}
P2 @ cta 2 {
  ld.acquire.gpu.u32 s1, [f];
  ld.u32 r2, [d];
  ld.acquire.gpu.u32 s3, [f];
  ld.u32 r4, [e];
  st.release.gpu.u32 [g], 1;
}
exists (P2:s1 == 1 /\\ P2:r2 == 0 /\\ P2:s3 == 2 /\\ P2:r4 == 0)
"""


@pytest.mark.parametrize(("scope", "seen"), [("cta", True), ("gpu", False)])
def test_what_a_round_hides_is_seen(scope: str, seen: bool) -> None:
    """P2 reads twice what a round of P1 wrote back. If the round is not morally strong with the writes of P0 and the
    reads of P2, these do not observe the releases (PTX ISA 8.9.2), as they would if the round were left out."""
    text = UNOBSERVED.replace("SCOPE", scope)
    result = check(parse_one(text), model_named("ptx-8.5"), enumerate_all=False)
    assert result.holds is seen


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_weak_store_between_rounds_is_seen(engine: str) -> None:
    """In coherence order: 1, 2, the first round's 1, 5, the second round's 1. Only that of strong writes is limited by
    atomicity (PTX ISA 8.10.3), so a round that writes back what it read can't be left out here."""
    result = check(parse_one(WEAK_STORES), model_named("ptx-8.5"), engine=engine, enumerate_all=False)
    assert (result.holds, result.observation) == (True, "sometimes")


def test_code_behind_a_loop_lies_between_its_ends() -> None:
    """What follows a polling loop stands between its header and its branch back; P1 may read before or after P0."""
    result = check(parse_one(BEHIND), model_named("ptx-8.5"), engine="both")
    assert result.observation == "sometimes"
    assert {outcome.registers["P1:r1"] for outcome in result.outcomes} == {11, 99}
