"""The simulation of barriers of the explicit side, on steps made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.barriers import EPOCH, Meeting, meetings
from ptxmm.events.explicit.relations.scopes import places
from ptxmm.events.explicit.trace import Step
from ptxmm.program.identity import EventId
from ptxmm.program.test import Placement
from tests.barrier_steps import ARRIVE, SYNC, WAIT, B, C, arrive, make_test, numbered, step, wait
from tests.support import calls


def meet(
    *threads: Sequence[Step],
    placement: Sequence[Placement] | None = None,
    b: tuple[int, int] | None = None,
    c: tuple[int, int] | None = None,
    ended: Sequence[bool] | None = None,
    fixed: dict[EventId, int | None] | None = None,
    observed: Sequence[EventId] | None = None,
    tokens: dict[EventId, int] | None = None,
) -> list[Meeting]:
    """How the steps turn out, in threads of one CTA of a cluster."""
    test = make_test(placement or [Placement(cta=0, cluster=0)] * len(threads), {"b": b, "c": c})
    ends = ended or [True] * len(threads)
    given = numbered(threads)
    return list(meetings(test, places(test), given, ends, lambda: None, fixed, observed=observed, tokens=tokens))


def reasons(found: Sequence[Meeting]) -> set[str]:
    """The kinds of misuse."""
    return {m.misuse for m in found if m.misuse is not None}


def phases(meeting: Meeting) -> list[list[int | None]]:
    """The phases by thread."""
    result: dict[int, list[int | None]] = {}
    for key in sorted(meeting.phases):
        result.setdefault(key[0], []).append(meeting.phases[key])
    return list(result.values())


# mbarriers: phases.


def test_a_phase_completes_with_the_last_arrival() -> None:
    (m,) = meet([arrive(), wait()], [arrive(), wait()], b=(2, 0), observed=())
    assert phases(m) == [[0, 1], [0, 1]] and m.completed == {B: 1} and not m.waiting and m.reached == (2, 2)


def test_the_next_phase_expects_what_the_first_did() -> None:
    (m,) = meet([step("mb.init", 2), arrive(2), arrive(), arrive(), arrive()], observed=())
    assert phases(m) == [[0, EPOCH, EPOCH + 1, EPOCH + 1, EPOCH + 2]] and m.completed == {B: 2}


def test_a_declared_mbarrier_may_miss_part_of_its_phase() -> None:
    (m,) = meet([step("mb.complete", 16), arrive(), arrive()], b=(0, 16))
    assert phases(m) == [[0, 1, 2]] and m.completed == {B: 3}


def test_mbarriers_at_other_offsets_are_others() -> None:
    other = ("b", 8)
    (m,) = meet([arrive(), step("mb.init", 1, place=other), arrive(place=other), arrive(place=other)], b=(2, 0))
    assert phases(m) == [[0, 0, EPOCH, EPOCH + 1]] and m.completed == {B: 0, other: 2}


def test_a_token_holds_phase_and_pending_count() -> None:
    found = meet([arrive(2)], [arrive()], b=(3, 0))
    assert {tuple(sorted(m.tokens.values())) for m in found} == {(1, 3), (2, 3)} and len(found) == 2
    (m,) = meet([arrive(2)], [arrive()], b=(3, 0), observed=())
    assert sorted(m.tokens.values()) in ([1, 3], [2, 3])
    (m,) = meet([arrive(), arrive()], b=(1, 0))
    assert m.tokens == {EventId(0, 0): 1, EventId(0, 1): EPOCH | 1}


def test_tokens_can_be_given() -> None:
    (m,) = meet([arrive(2)], [arrive()], b=(3, 0), tokens={EventId(0, 0): 2, EventId(1, 0): 3})
    assert m.tokens == {EventId(0, 0): 2, EventId(1, 0): 3}
    assert not meet([arrive(2)], [arrive()], b=(3, 0), tokens={EventId(0, 0): 3, EventId(1, 0): 3})


def test_dropped_arrivals_are_not_expected_again() -> None:
    (m,) = meet([step("mb.drop"), arrive(), arrive()], b=(2, 0))
    assert phases(m) == [[0, 0, 1]] and m.completed == {B: 2}


# mbarriers: bytes.


def test_expected_bytes_hold_the_phase_open() -> None:
    (m,) = meet([arrive(expect=16), wait(0), step("mb.complete", 16), wait()], b=(1, 0))
    assert phases(m) == [[0, 0, 0, 1]]
    (m,) = meet([step("mb.expect", 16), arrive(), step("mb.complete", 16), wait()], b=(1, 0))
    assert phases(m) == [[0, 0, 0, 1]]


def test_bytes_may_complete_before_they_are_expected() -> None:
    found = meet([arrive(expect=16), wait()], [step("mb.complete", 16)], b=(1, 0))
    assert [phases(m) for m in found] == [[[0, 1], [0]]]


def test_bytes_of_the_next_phase() -> None:
    found = meet([arrive(expect=16), arrive(expect=16)], [step("mb.complete", 16), step("mb.complete", 16)], b=(1, 0))
    assert [phases(m) for m in found if m.misuse is None] == [[[0, 1], [0, 1]]]
    assert reasons(found) == {"more arrivals at mbarrier b than its phase expects"}  # before the bytes of the phase


def test_an_arrival_while_only_bytes_are_missing_is_too_much() -> None:
    found = meet([arrive(expect=16), arrive()], b=(1, 0))
    assert reasons(found) == {"more arrivals at mbarrier b than its phase expects"} and len(found) == 1
    (m,) = found
    assert m.reached == (2,) and m.waiting == {0} and phases(m) == [[0]]


# mbarriers: waits.


@pytest.mark.parametrize(("parity", "result"), [(0, 0), (1, 1)])
def test_parity_in_phase_0(parity: int, result: int) -> None:
    (m,) = meet([wait(result, parity=parity)], b=(1, 0))
    assert phases(m) == [[0]]
    assert not meet([wait(1 - result, parity=parity)], b=(1, 0))


def test_parity_alternates() -> None:
    (m,) = meet([arrive(), wait(1, parity=0), wait(0, parity=1), arrive(), wait(1, parity=1)], b=(1, 0))
    assert phases(m) == [[0, 1, 1, 1, 2]]


def test_a_wait_by_parity_may_be_two_phases_late() -> None:
    found = meet([arrive(), arrive(), arrive()], [wait(1, parity=0)], b=(1, 0))
    assert {m.phases[EventId(1, 0)] for m in found} == {1, 3}


def test_a_false_wait_happens_before_the_phase_completes() -> None:
    (m,) = meet([arrive()], [arrive(), wait(0, state=EventId(1, 0))], b=(2, 0), observed=())
    assert phases(m) == [[0], [0, 0]]
    (m,) = meet([arrive()], [arrive(), wait(1, state=EventId(1, 0))], b=(2, 0), observed=())
    assert phases(m) == [[0], [0, 1]]


def test_a_choice_that_never_holds_is_no_execution() -> None:
    assert not meet([wait()], b=(1, 0))
    assert not meet([arrive(), wait(0)], b=(1, 0))
    assert not meet([wait(), SYNC], [SYNC], b=(1, 0))


def test_a_wait_by_the_state_of_another_thread() -> None:
    (m,) = meet([arrive()], [wait(state=EventId(0, 0))], b=(1, 0))
    assert phases(m) == [[0], [1]]
    with pytest.raises(PtxmmError):
        meet([wait(state=EventId(3, 0))], b=(1, 0))


def test_a_wait_for_a_phase_long_past_is_undefined() -> None:
    found = meet([arrive(), arrive()], [wait()], b=(1, 0))
    text = "a wait for a phase of mbarrier b that is neither the current one nor the one before"
    assert {(m.phases.get(EventId(1, 0)), m.misuse) for m in found} == {(1, None), (None, text)}
    assert reasons(meet([wait(0, state=EPOCH)], b=(1, 0))) == {text}
    assert reasons(meet([wait(1, state=EPOCH)], b=(1, 0))) == {text}


def test_an_mbarrier_that_never_completes_just_ends() -> None:
    (m,) = meet([arrive(), wait(0)], b=(2, 0))
    assert not m.waiting and m.completed == {B: 0}


# mbarriers: initialisation.


def test_operations_follow_the_init_of_another_thread() -> None:
    (m,) = meet([arrive(), wait()], [step("mb.init", 1)])
    assert phases(m) == [[EPOCH, EPOCH + 1], [0]]


def test_an_operation_on_what_nobody_initialises_is_undefined() -> None:
    text = "an operation on mbarrier b, which is not initialised"
    for kind in ("mb.arrive", "mb.drop", "mb.expect", "mb.complete", "mb.increment", "mb.inval"):
        assert reasons(meet([step(kind)])) == {text}
    assert reasons(meet([wait(0)])) == {text}
    assert reasons(meet([arrive(), step("mb.init", 1)])) == {text}
    assert reasons(meet([step("mb.inval"), arrive()], b=(1, 0))) == {text}
    assert reasons(meet([arrive(), SYNC], [SYNC, step("mb.init", 1)])) == {text}


def test_a_second_init_needs_an_inval() -> None:
    text = "mbarrier b is initialised again without mbarrier.inval"
    assert reasons(meet([step("mb.init", 1), step("mb.init", 1)])) == {text}
    assert reasons(meet([step("mb.init", 1)], b=(1, 0))) == {text}
    (m,) = meet([step("mb.init", 1), arrive(), step("mb.inval"), step("mb.init", 2), arrive()])
    assert phases(m) == [[0, EPOCH, 0, 2 * EPOCH]] and m.completed == {B: 0}
    (m,) = meet([step("mb.inval"), step("mb.init", 1), arrive(), wait()], b=(1, 0))
    assert phases(m) == [[0, EPOCH, EPOCH + 1]]


def test_an_operation_may_fall_to_either_of_two_initialisations() -> None:
    found = meet([step("mb.init", 2), step("mb.inval"), step("mb.init", 2)], [arrive()])
    assert {m.phases[EventId(1, 0)] for m in found} == {EPOCH, 2 * EPOCH}


@pytest.mark.parametrize("count", [0, 1 << 20, -1])
def test_counts_out_of_range_are_undefined(count: int) -> None:
    assert reasons(meet([step("mb.init", count)])) == {f"mbarrier b is initialised with the count {count}"}
    many = Step(EventId(0, 0), "mb.arrive", count, place=B)
    assert reasons(meet([many], b=(1, 0))) == {f"{count} arrivals at once at mbarrier b"}


def test_the_tx_count_has_a_range() -> None:
    most = (1 << 20) - 1
    text = {"the tx-count of mbarrier b leaves its range"}
    assert not reasons(meet([step("mb.expect", most)], b=(1, 0)))
    assert reasons(meet([step("mb.expect", most), step("mb.expect", 1)], b=(1, 0))) == text
    assert reasons(meet([step("mb.complete", most + 1)], b=(1, 0))) == text
    assert reasons(meet([arrive(expect=most + 1)], b=(1, 0))) == text


def test_no_complete() -> None:
    (m,) = meet([arrive(no_complete=True), arrive()], b=(2, 0))
    assert m.misuse is None and m.completed == {B: 1}
    (m,) = meet([arrive(2, no_complete=True)], b=(2, 0))
    assert m.misuse == "an arrival with .noComplete completes the phase of mbarrier b"
    found = meet([arrive(no_complete=True)], [arrive()], b=(2, 0), observed=())
    assert {m.misuse is None for m in found} == {True, False}


def test_more_dropped_than_expected() -> None:
    (m,) = meet([step("mb.increment"), step("mb.drop", 2)], b=(1, 0))
    assert m.misuse == "more arrivals dropped from mbarrier b than it expects"


# Asynchronous arrivals.


def floating(kind: str, number: int, **fields: object) -> Step:
    return step(kind, number, asynchronous=True, **fields)


def test_an_asynchronous_arrival_happens_at_any_time_after_its_issue() -> None:
    pipeline = [arrive(expect=16), floating("mb.complete", 16), wait(0), arrive(place=C)]
    (m,) = meet(pipeline, b=(1, 0), c=(1, 0))
    assert m.reached == (4,) and m.completed == {B: 1, C: 1}
    pipeline[2] = wait(1)
    (m,) = meet(pipeline, b=(1, 0), c=(1, 0))
    assert phases(m) == [[0, 0, 1, 0]]
    assert not meet([wait(1), *pipeline[:2]], b=(1, 0))


def test_asynchronous_arrivals_all_happen_in_the_end() -> None:
    (m,) = meet([arrive(expect=16), floating("mb.complete", 16)], b=(1, 0))
    assert m.completed == {B: 1} and m.reached == (2,)
    (m,) = meet([floating("mb.arrive", 1), step("bar.sync", 1)], [step("bar.sync", 2)], b=(1, 0))
    assert m.waiting == {0, 1} and m.completed == {B: 1}


def test_a_thread_held_up_does_not_issue() -> None:
    (m,) = meet([step("bar.sync", 1), floating("mb.arrive", 1)], [step("bar.sync", 2)], b=(1, 0))
    assert m.reached == (1, 1) and m.completed == {B: 0} and EventId(0, 1) not in m.phases


def test_asynchronous_arrivals_overtake_each_other() -> None:
    found = meet([floating("mb.arrive", 1), floating("mb.arrive", 1)], b=(1, 0))
    assert {(m.phases[EventId(0, 0)], m.phases[EventId(0, 1)]) for m in found} == {(0, 1), (1, 0)}


def test_copy_async_arrive_counts_itself() -> None:
    increment, arrival = step("mb.increment"), floating("mb.arrive", 1)
    found = meet([increment, arrival, arrive(), wait()], b=(1, 0), observed=())
    assert [phases(m) for m in found] == [[[0, 0, 1]]]
    found = meet([arrival, arrive()], b=(1, 0), observed=())  # .noinc
    assert {m.completed[B] for m in found} == {2}


def test_an_asynchronous_arrival_may_be_undefined() -> None:
    (m,) = meet([floating("mb.arrive", 2), SYNC], [SYNC], b=(1, 0))
    assert m.misuse == "more arrivals at mbarrier b than its phase expects"
    assert m.reached == (2, 1) and not m.waiting  # the thread itself goes on
    assert reasons(meet([floating("mb.arrive", 1), SYNC], [SYNC])) == {
        "an operation on mbarrier b, which is not initialised"
    }
    (m,) = meet([floating("mb.arrive", 1), step("mb.init", 1)])
    assert m.misuse is None and m.phases[EventId(0, 0)] == EPOCH


# Cluster barriers.


def in_ctas(*ctas: int) -> list[Placement]:
    return [Placement(cluster=0, cta=c) for c in ctas]


def test_cluster_barriers_join_ctas() -> None:
    (m,) = meet([ARRIVE, WAIT, ARRIVE, WAIT], [ARRIVE, WAIT, ARRIVE, WAIT], placement=in_ctas(0, 1))
    assert phases(m) == [[0, 0, 1, 1], [0, 0, 1, 1]] and not m.waiting
    (m,) = meet([ARRIVE, WAIT], [ARRIVE, WAIT], placement=[Placement(cta=0), Placement(cta=1)])
    assert not m.waiting
    (m,) = meet([ARRIVE, WAIT], [SYNC], placement=[Placement(cta=0), Placement(cta=1)])
    assert not m.waiting


def test_an_arrival_does_not_wait_but_a_wait_does() -> None:
    (m,) = meet([ARRIVE, SYNC, WAIT], [SYNC, ARRIVE, WAIT])
    assert not m.waiting
    (m,) = meet([ARRIVE, WAIT, SYNC], [SYNC, ARRIVE, WAIT])
    assert m.waiting == {0, 1} and m.reached == (2, 1) and EventId(0, 1) not in m.phases


def test_exited_threads_are_not_waited_for() -> None:
    (m,) = meet([ARRIVE, WAIT, ARRIVE, WAIT], [ARRIVE], [])
    assert not m.waiting and phases(m) == [[0, 0, 1, 1], [0]]
    (m,) = meet([ARRIVE, WAIT], [], ended=[True, False])
    assert m.waiting == {0} and m.reached == (2, 0)


def test_misuse_of_cluster_barriers() -> None:
    assert reasons(meet([ARRIVE, ARRIVE])) == {"a thread arrives twice in one phase of barrier.cluster"}
    assert reasons(meet([WAIT])) == {"a thread waits at barrier.cluster without having arrived"}
    assert reasons(meet([ARRIVE, WAIT, WAIT])) == {"a thread waits at barrier.cluster without having arrived"}
    host = [Placement(host=True)]
    assert reasons(meet([ARRIVE], placement=host)) == {"a host thread has no warp and no cluster"}


# Operands out of range.


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (step("bar.sync", 16), "barrier 16, but a CTA has the barriers 0 to 15"),
        (step("bar.red", 77, operation="or"), "barrier 77, but a CTA has the barriers 0 to 15"),
        (step("bar.sync", count=33), "33 threads at a barrier, which is no multiple of 32"),
        (step("bar.arrive", count=0), "0 threads at a barrier, which is no positive multiple of 32"),
        (wait(parity=2), "the parity 2 of a wait, which is not 0 or 1"),
        (wait(0, parity=7), "the parity 7 of a wait, which is not 0 or 1"),
    ],
)
def test_operands_out_of_range_stop_their_thread_alone(bad: Step, reason: str) -> None:
    other = [step("bar.sync", count=32), arrive(), wait(parity=0), step("bar.sync", count=32)]
    warps = [Placement(cta=0, cluster=0, warp=i) for i in range(2)]
    found = meet([arrive(), bad, arrive()], other, b=(2, 0), placement=warps)
    assert reasons(found) == {reason}
    assert {m.reached for m in found if m.misuse} == {(2, 4)}


# Warp barriers.


def lanes(count: int) -> list[Placement]:
    return [Placement(cta=0, warp=0)] * count


def mask(bits: int) -> Step:
    return step("warp.sync", bits)


def test_warp_barriers() -> None:
    (m,) = meet([mask(3), mask(3)], [mask(3), mask(3)], [mask(4)], placement=lanes(3))
    assert phases(m) == [[0, 1], [0, 1], [0]] and not m.waiting


def test_lanes_that_are_not_shown_take_part() -> None:
    (m,) = meet([mask(0xFFFFFFFF)], [mask(0xFFFFFFFF)], placement=lanes(2))
    assert not m.waiting
    (m,) = meet([mask(1)], [mask(1)], placement=[Placement(cta=0), Placement(cta=0)])  # lanes 0 of two warps
    assert not m.waiting


def test_warp_barriers_of_different_masks_deadlock() -> None:
    (m,) = meet([mask(3)], [mask(7)], placement=lanes(2))
    assert m.waiting == {0, 1} and m.misuse is None


def test_exited_lanes_count_as_arrived() -> None:
    (m,) = meet([mask(3)], [], placement=lanes(2))
    assert not m.waiting
    (m,) = meet([mask(3)], [], placement=lanes(2), ended=[True, False])
    assert m.waiting == {0}


def test_a_lane_outside_its_mask_is_undefined() -> None:
    found = meet([mask(2)], [mask(2)], placement=lanes(2))
    assert reasons(found) == {"a thread at bar.warp.sync is not in its membermask"}


# CTA barriers, and all together.


def test_deadlock_of_two_barriers() -> None:
    (m,) = meet([step("bar.sync", 0), step("bar.sync", 1)], [step("bar.sync", 1), step("bar.sync", 0)])
    assert m.waiting == {0, 1} and m.reached == (1, 1)


def test_a_barrier_orders_init_and_arrival() -> None:
    (m,) = meet([step("mb.init", 2), SYNC, arrive(), wait()], [SYNC, arrive(), wait()], observed=())
    assert phases(m) == [[0, 0, EPOCH, EPOCH + 1], [0, EPOCH, EPOCH + 1]]


def test_a_barrier_keeps_a_wait_from_being_early() -> None:
    assert not meet([arrive(), SYNC], [SYNC, wait(0)], b=(1, 0))
    (m,) = meet([arrive(), SYNC], [wait(0), SYNC], b=(1, 0))
    assert phases(m) == [[0, 0], [0, 0]]


def test_misuse_comes_with_all_that_others_can_do_before() -> None:
    found = meet([ARRIVE, ARRIVE], [arrive(), wait()], b=(1, 0))
    assert [(m.reached, m.waiting) for m in found] == [((2, 2), frozenset({0}))]
    twice = [step("bar.arrive", 1, count=96)] * 2
    found = meet(twice, [SYNC, SYNC], placement=in_ctas(0, 1))
    assert [m.reached for m in found] == [(2, 2)]


def test_given_phases_leave_only_what_has_them() -> None:
    threads = [[arrive(), arrive()], [arrive()]]
    found = meet(*threads, b=(1, 0))
    assert len(found) == 3
    for m in found:
        (same,) = meet(*threads, b=(1, 0), fixed=dict(m.phases))
        assert same == m
    wrong: dict[EventId, int | None] = dict.fromkeys(found[0].phases, 0)
    assert not meet(*threads, b=(1, 0), fixed=wrong)
    assert not meet([wait(0, state=EPOCH)], b=(1, 0), fixed={EventId(0, 0): 0})


def test_phases_do_not_matter_where_nobody_waits() -> None:
    assert len(meet([arrive(), arrive()], [arrive()], b=(1, 0))) == 3
    (m,) = meet([arrive(), arrive()], [arrive()], b=(1, 0), observed=())
    assert sorted(p for p in m.phases.values() if p is not None) == [0, 1, 2]


def test_it_is_quick() -> None:
    """4 threads with 6 operations each: a pipeline over two mbarriers, and waits by parity."""
    worker = [
        s for phase in range(2) for place in (B, C) for s in (arrive(place=place), wait(parity=phase, place=place))
    ]
    (m,) = meet(*[worker[:6]] * 4, b=(4, 0), c=(4, 0), observed=())
    assert m.completed == {B: 2, C: 1}
    producer = [s for place in (B, C, B) for s in (arrive(place=place), wait(0, parity=1, place=place))]
    both = [arrive(), arrive(place=C)] * 3
    work = calls(lambda: meet(*[worker[:6]] * 4, b=(4, 0), c=(4, 0), observed=()))
    work += calls(lambda: meet(*[producer] * 2, b=(3, 0), c=(3, 0), observed=()))
    work += calls(lambda: meet(*[both] * 4, b=(12, 0), c=(12, 0), observed=()))
    work += calls(lambda: meet(*[both] * 4, b=(4, 0), c=(2, 0), observed=()))
    assert work < 1_500_000
