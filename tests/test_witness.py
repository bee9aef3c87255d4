"""Confirmation of executions: true witnesses pass, each kind of false one is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ptxmm.cat import Model, load
from ptxmm.engines.explicit.enumerate import search
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Found, Limits, Observed, Source, Witness
from ptxmm.program.condition import State
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from tests.reference import everything
from tests.support import model_named, parse_one

MP = """PTX MP
{ .global .u32 x = 0; .global .u32 y = 0; }
 P0 @ cta 0                            | P1 @ cta 1                              ;
 st.global.u32 [x], 1                  | ld.acquire.gpu.global.u32 r0, [y]       ;
 st.release.gpu.global.u32 [y], 1      | ld.global.u32 r1, [x]                   ;
 fence.sc.gpu                          | fence.sc.gpu                            ;
 st.relaxed.gpu.global.u32 [x], 2      |                                         ;
exists (P1:r0 == 1 /\\ P1:r1 == 1)
"""

BAR = """PTX BAR
{ .global .u32 x = 0; }
 P0 @ cta 0           | P1 @ cta 0            ;
 st.global.u32 [x], 1 | bar.sync 0            ;
 bar.sync 0           | ld.global.u32 r0, [x] ;
exists (P1:r0 == 1)
"""

W1, W2, W3 = EventId(0, 0), EventId(0, 1), EventId(0, 3)
F0, F1 = EventId(0, 2), EventId(1, 2)
R0, R1 = EventId(1, 0), EventId(1, 1)


def confirm(test: Test, model: Model, observed: Observed, witness: Witness) -> State:
    return Confirmer(test, model).confirm(observed, witness)


def found(test: Test, accept: Callable[[State], bool]) -> Found:
    """A final state that ``accept`` takes."""
    result = search(test, model_named("ptx-7.5"), everything(test), Limits())
    return next(f for f in result.found if accept(f.state))


def message_passed() -> tuple[Test, Found]:
    """MP and the execution in which both reads see the data."""
    test = parse_one(MP)
    return test, found(test, lambda s: s.registers[1, "r0"] == 1 and s.registers[1, "r1"] == 1)


def test_every_state_found_is_confirmed() -> None:
    for text in (MP, BAR):
        test = parse_one(text)
        for name in ("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc"):
            model = model_named(name)
            confirmer = Confirmer(test, model)
            for f in search(test, model, everything(test), Limits()).found:
                assert confirmer.confirm(everything(test), f.witness) == f.state


def x_from(write: EventId | None) -> tuple[Source, ...]:
    return (Source("x", 0, 4, write),)


FALSE: dict[str, tuple[Callable[[Witness], Witness], str]] = {
    "a value that no source holds": (
        lambda w: replace(w, values={**w.values, R1: 7}), "returns another value than its sources hold"),
    "a source that does not exist": (
        lambda w: replace(w, reads={**w.reads, R1: x_from(EventId(0, 9))}), "there is no write"),
    "a source of other bytes": (
        lambda w: replace(w, reads={**w.reads, R1: x_from(W2)}), "there is no write"),
    "bytes left out": (
        lambda w: replace(w, reads={**w.reads, R1: (Source("x", 0, 2, W1),)}), "do not cover its bytes once"),
    "bytes twice": (
        lambda w: replace(w, reads={**w.reads, R1: (Source("x", 0, 4, W1), Source("x", 0, 4, W1))}),
        "do not cover its bytes once"),
    "torn without leave": (
        lambda w: replace(w, reads={**w.reads, R1: (Source("x", 0, 2, W1), Source("x", 2, 2, None))}),
        "takes bytes of several writes"),
    "a read without a value": (
        lambda w: replace(w, values={R0: 1}), "has no value"),
    "a value without a read": (
        lambda w: replace(w, values={**w.values, EventId(1, 7): 1}), "that is not executed has a value"),
    "a read without sources": (
        lambda w: replace(w, reads={R0: w.reads[R0]}), "the reads with sources are not those executed"),
    "a forbidden value": (
        lambda w: replace(w, values={**w.values, R1: 0}, reads={**w.reads, R1: x_from(None)}),
        "axiom Causality of ptx-7.5 does not hold"),
    "coherence of different bytes": (
        lambda w: replace(w, co=w.co | {(W1, W2)}), "coherence order can't relate"),
    "coherence with a cycle": (
        lambda w: replace(w, co=w.co | {(W3, W1)}), "coherence order is not a strict partial order"),
    "coherence missing": (
        lambda w: replace(w, co=frozenset(), last=(Source("x", 0, 4, W3), *w.last[1:])), "axiom Coherence"),
    "Fence-SC order of other events": (
        lambda w: replace(w, fence_sc=frozenset({(F0, R0)})), "Fence-SC order can't relate"),
    "Fence-SC order both ways": (
        lambda w: replace(w, fence_sc=frozenset({(F0, F1), (F1, F0)})), "does not hold"),
    "Fence-SC order missing": (
        lambda w: replace(w, fence_sc=frozenset()), "axiom FenceSC-total of ptx-7.5 does not hold"),
    "a last write that is overwritten": (
        lambda w: replace(w, last=(Source("x", 0, 4, W1), *w.last[1:])), "is not maximal in coherence order"),
    "two last writes": (
        lambda w: replace(w, last=(Source("y", 0, 2, W2), Source("y", 2, 2, None), *w.last[:1])),
        "is not maximal in coherence order"),
    "no last write": (
        lambda w: replace(w, last=w.last[:1]), "no last write for y"),
    "a deadlock": (
        lambda w: replace(w, deadlocked=frozenset({EventId(0, 0)})), "has no final state"),
    "phases of no barrier": (
        lambda w: replace(w, phases={F0: 0}), "the phases are not those of the barriers executed"),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_false_witnesses(name: str) -> None:
    test, good = message_passed()
    change, reason = FALSE[name]
    model, what = model_named("ptx-7.5"), everything(test)
    assert [s.key for s in good.witness.last] == ["x", "y"]
    assert confirm(test, model, what, good.witness) == good.state
    with pytest.raises(Unconfirmed) as caught:
        confirm(test, model, what, change(good.witness))
    assert reason in str(caught.value)


def test_phases_must_be_possible() -> None:
    test = parse_one(BAR)
    good = found(test, lambda s: True)
    model, what = model_named("ptx-7.5"), everything(test)
    assert confirm(test, model, what, good.witness) == good.state
    first, second = EventId(0, 1), EventId(1, 0)
    for phases in ({first: 0, second: 1}, {first: 1, second: 1}, {first: None, second: None}):
        with pytest.raises(Unconfirmed, match="the barriers can't form these phases"):
            confirm(test, model, what, replace(good.witness, phases=phases))
    stale = replace(good.witness, values={EventId(1, 1): 0}, reads={EventId(1, 1): x_from(None)})
    with pytest.raises(Unconfirmed, match="axiom Causality"):
        confirm(test, model, what, stale)


def test_a_value_is_not_made_of_itself() -> None:
    test = parse_one(
        "PTX LB\n{ .global .u32 x = 0; .global .u32 y = 0; }\n P0 @ cta 0 | P1 @ cta 1 ;\n"
        " ld.global.u32 r0, [x] | ld.global.u32 r0, [y] ;\n st.global.u32 [y], r0 | st.global.u32 [x], r0 ;\n"
        "exists (P0:r0 == 42)\n"
    )
    reads = {EventId(0, 0): x_from(EventId(1, 1)), EventId(1, 0): (Source("y", 0, 4, EventId(0, 1)),)}
    last = (Source("x", 0, 4, EventId(1, 1)), Source("y", 0, 4, EventId(0, 1)))
    bogus = Witness({EventId(0, 0): 42, EventId(1, 0): 42}, reads, frozenset(), frozenset(), {}, last)
    with pytest.raises(Unconfirmed, match="a value is made of itself"):
        confirm(test, model_named("ptx-7.5"), everything(test), bogus)


def test_the_filter_counts() -> None:
    test = parse_one(MP.replace("exists", "filter (P1:r0 == 0)\nexists"))
    good = message_passed()[1]
    with pytest.raises(Unconfirmed, match="filter"):
        confirm(test, model_named("ptx-7.5"), everything(test), good.witness)


def test_torn_reads_are_confirmed_where_the_model_has_them() -> None:
    test = parse_one(
        "PTX T\n{ .global .u32 x = 0; }\n P0 @ cta 0 | P1 @ cta 1 ;\n"
        " st.global.u32 [x], 0x00010001 | ld.global.u32 r0, [x] ;\nexists (P1:r0 == 1)\n"
    )
    model, what = model_named("ptx-8.5"), everything(test)
    torn = [f for f in search(test, model, what, Limits()).found if f.state.registers[1, "r0"] in (1, 0x10000)]
    assert len(torn) == 2
    for f in torn:
        assert confirm(test, model, what, f.witness) == f.state
        with pytest.raises(Unconfirmed):
            confirm(test, load("ptx-8.5", {"tear": "off"}), what, f.witness)


def test_a_thread_that_goes_round_for_ever_is_refused() -> None:
    test = parse_one("PTX L\n{ .global .u32 x = 0; }\nP0 @ cta 0 {\nL: bra L;\n}\nexists (x == 0)\n")
    empty = Witness({}, {}, frozenset(), frozenset(), {}, (Source("x", 0, 4, None),))
    with pytest.raises(Unconfirmed, match="does not reach its end"):
        confirm(test, model_named("ptx-7.5"), everything(test), empty)


SIZES = """PTX SIZES
{ .global .u32 x = 0; }
 P0 @ cta 0                    | P1 @ cta 0             ;
 st.global.u32 [x], 0x04030201  | bar.sync 0           ;
 st.global.u8 [x+1], 9          | ld.global.u16 r0, [x] ;
 st.global.u16 [x+2], 0x0807    | ld.global.u8 r1, [x+3] ;
 bar.sync 0                     |                      ;
exists (P1:r0 == 0x0901 /\\ x == 0x08070901)
"""


def test_sizes_mix() -> None:
    test = parse_one(SIZES)
    model, what = model_named("ptx-8.5"), everything(test)
    (only,) = search(test, model, what, Limits()).found
    assert only.state.registers[1, "r0"] == 0x0901 and only.state.memory["x", 0] == 0x08070901
    assert confirm(test, model, what, only.witness) == only.state
    wide, byte, half = EventId(0, 0), EventId(0, 1), EventId(0, 2)
    assert only.witness.co == {(wide, byte), (wide, half)}
    with pytest.raises(Unconfirmed, match="writes that do not overlap"):
        confirm(test, model, what, replace(only.witness, co=only.witness.co | {(byte, half)}))
    with pytest.raises(Unconfirmed, match="no write"):
        reads = {**only.witness.reads, EventId(1, 1): (Source("x", 0, 1, wide), Source("x", 1, 1, half))}
        confirm(test, model, what, replace(only.witness, reads=reads))
    stale = tuple(Source("x", s.offset, s.size, wide) for s in only.witness.last)
    with pytest.raises(Unconfirmed, match="not maximal"):
        confirm(test, model, what, replace(only.witness, last=stale))


TOKEN = """PTX TOKEN
{ .shared .b64 b @ cta 0 = mbarrier(2); }
 P0 @ cta 0                                 | P1 @ cta 0                               ;
 mbarrier.arrive.shared::cta.b64 t, [b]     | mbarrier.arrive.shared::cta.b64 _, [b]   ;
 mbarrier.test_wait.shared::cta.b64 p, [b], t |                                        ;
exists (b == 1 /\\ P0:p == 1)
"""


def test_mbarriers_are_run_again() -> None:
    test = parse_one(TOKEN)
    model, what = model_named("ptx-8.5"), everything(test)
    finals = search(test, model, what, Limits()).found
    # The state tells how many arrivals were pending; the wait may come before or after the other arrival.
    assert {(f.state.registers[0, "t"], f.state.registers[0, "p"]) for f in finals} == {(2, 0), (2, 1), (1, 1)}
    assert all(f.state.memory["b", 0] == 1 and confirm(test, model, what, f.witness) == f.state for f in finals)
    late = next(f.witness for f in finals if f.state.registers[0, "t"] == 1)
    arrive, wait = EventId(0, 0), EventId(0, 1)
    with pytest.raises(Unconfirmed, match="can't form these phases"):
        confirm(test, model, what, replace(late, values={**late.values, wait: 0}))
    with pytest.raises(Unconfirmed, match="can't form these phases"):
        confirm(test, model, what, replace(late, values={**late.values, arrive: 7}))
    with pytest.raises(Unconfirmed, match="has no value"):
        confirm(test, model, what, replace(late, values={arrive: 1}))


NARROW = """PTX NARROW
{ .global .u32 d = 0; .shared .b64 b @ cta 0, cluster 0 = mbarrier(2); }
P0 @ cta 0, cluster 0 { st.global.u32 [d], 1; mbarrier.arrive.release.cluster.shared::cta.b64 _, [b]; }
P1 @ cta 1, cluster 0 { mbarrier.arrive.release.cta.shared::cluster.b64 _, [b]; }
P2 @ cta 0, cluster 0 {
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;
  ld.global.u32 r0, [d];
}
exists (P2:p == 1 /\\ P2:r0 == 0)
"""


def test_the_order_at_mbarriers_is_checked() -> None:
    """Read as read-modify-writes, an arrival synchronizes only if none of a narrower scope comes after it."""
    test, model = parse_one(NARROW), load("ptx-8.5", {"mbarrier": "rmw"})
    what = everything(test)
    stale = {"p": 1, "r0": 0}
    finals = search(test, model, what, Limits()).found
    one = next(f for f in finals if all(f.state.registers[2, n] == v for n, v in stale.items()))
    first, second, wait = EventId(0, 1), EventId(1, 0), EventId(2, 0)
    assert one.witness.order == (first, second, wait) and confirm(test, model, what, one.witness) == one.state
    for order, reason in (
        ((second, first, wait), "does not hold"),
        ((first, wait, second), "can't form"),
        ((first, wait), "can't form"),
        ((), "can't form"),
    ):
        with pytest.raises(Unconfirmed, match=reason):
            confirm(test, model, what, replace(one.witness, order=order))
    plain = model_named("ptx-8.5")
    assert all(f.witness.order == () for f in search(test, plain, what, Limits()).found)


SHUFFLE = """PTX SHUFFLE
{ .global .u32 x = 0; }
 P0 @ cta 0, warp 0                     | P1 @ cta 0, warp 0                     | P2 @ cta 1           ;
 ld.relaxed.gpu.global.u32 r0, [x]      | mov.u32 r0, 7                          | st.global.u32 [x], 1 ;
 shfl.sync.idx.b32 r1, r0, 0, 0x1f, 0x3 | shfl.sync.idx.b32 r1, r0, 0, 0x1f, 0x3 | st.global.u32 [x], 2 ;
exists (P1:r1 == 1)
"""


@pytest.mark.parametrize("text", [MP, BAR, SIZES, TOKEN, NARROW, SHUFFLE], ids=lambda text: text.split()[1])
def test_what_is_kept_of_one_witness_changes_no_other(text: str) -> None:
    """Parts of true witnesses put together anew: a confirmer that has seen all says of each what a fresh one says."""
    test, model = parse_one(text), load("ptx-8.5", {"mbarrier": "rmw"})
    what = everything(test)
    seen = Confirmer(test, model)

    def told(confirmer: Confirmer, witness: Witness) -> object:
        try:
            if witness.unroll is None:
                return confirmer.confirm(what, witness)
            begun = confirmer.rebuild(witness)
            return begun.written, begun.co, begun.evaluator.value("po")
        except Unconfirmed as error:
            return str(error)

    witnesses = [f.witness for f in search(test, model, what, Limits()).found][:6]
    assert witnesses
    for one in witnesses:
        for other in witnesses:
            for name in ("values", "reads", "co", "fence_sc", "phases", "last", "order"):
                mixed = replace(one, **{name: getattr(other, name)})
                assert told(seen, mixed) == told(Confirmer(test, model), mixed)
            beginning = replace(one, values=dict(list(one.values.items())[:1]), unroll=1)
            assert told(seen, beginning) == told(Confirmer(test, model), beginning)
