"""The scenarios of barriers and mbarriers on the symbolic side: every rule."""

from __future__ import annotations

from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.events.symbolic.barriers.scenarios import Scenario, matches, scenarios
from ptxmm.events.symbolic.event import SyncEvent, ThreadEvents
from ptxmm.events.symbolic.values.domain import Domain, only
from ptxmm.program.identity import EventId
from ptxmm.program.test import MemoryObject, Placement, Test, Thread
from ptxmm.ptx.ops import Exit, Source, Type
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas
from tests.support import calls

B64 = Type("b", 64)
EPOCH = 1 << 20
PLAIN = Exit(Source(Span(1, 1, 1), "exit"))  # the scenarios look at nothing of the instruction


class Do(Struct, frozen=True):
    """A step of a thread. ``of``: the index of the step of this thread whose token a wait tests."""

    kind: str
    on: str = "m"
    number: int | None = None
    amount: int = 0
    parity: int | None = None
    of: int | None = None
    value: int | None = None
    token: bool = False
    counted: bool = True
    no_complete: bool = False
    flies: bool = False


def bar(kind: str, id_: int = 0, count: int | None = None) -> Do:
    return Do(f"bar.{kind}", on=str(id_), number=count)


def warp(mask: int) -> Do:
    return Do("warp.sync", number=mask)


ARRIVE, WAIT = Do("cluster.arrive"), Do("cluster.wait")


def mb(kind: str, on: str = "m", number: int | None = None, **more: object) -> Do:
    return replace(Do(f"mb.{kind}", on=on, number=number), **more)


def arrive(on: str = "m", number: int | None = None, **more: object) -> Do:
    return mb("arrive", on, number, **more)


def parity(p: int, on: str = "m") -> Do:
    return mb("wait", on, parity=p)


def state(of: int, on: str = "m") -> Do:
    return mb("wait", on, of=of)


def event(thread: int, index: int, do: Do, formulas: Formulas, presence: Formula = TRUE) -> SyncEvent:
    """The event of a step; the outcome of a wait is open."""
    made = SyncEvent(EventId(thread, index), do.kind, PLAIN, presence, 100 * thread + index)
    made.no_complete, made.asynchronous, made.counted = do.no_complete, do.flies, do.counted
    if do.kind.startswith("bar."):
        made.barrier = only(int(do.on))
        made.count = None if do.number is None else only(do.number)
    elif do.kind == "warp.sync":
        made.mask = only(do.number or 0)
    elif do.kind.startswith("mb."):
        made.place = {(do.on, 0): TRUE}
        made.amount = only(do.amount)
        made.count = None if do.number is None else only(do.number)
        made.tokens = Domain({}) if do.token else None
    if do.kind == "mb.wait":
        made.outcome = formulas.variable()
        made.parity = None if do.parity is None else only(do.parity)
        made.state = None if do.value is None else only(do.value)
        made.state_of = None if do.of is None else EventId(thread, do.of)
    return made


def setting(places: list[Placement], mbarriers: dict[str, tuple[int, int] | None]) -> Test:
    """A test without instructions."""
    objects = {
        name: MemoryObject(
            name, name, "shared", B64, 1, False, (0,), 64 * i, name, name, mbarrier=() if m is None else (m,)
        )
        for i, (name, m) in enumerate(mbarriers.items())
    }
    return Test("t", tuple(Thread(f"P{i}", p, (), {}) for i, p in enumerate(places)), objects, None)


def run(
    *threads: list[Do],
    m: tuple[int, int] | None = None,
    n: tuple[int, int] | None = None,
    places: list[Placement] | None = None,
    ordered: bool = False,
) -> list[Scenario]:
    """All scenarios of threads that take every one of their steps."""
    formulas = Formulas()
    test = setting(places or [Placement(cta=0, cluster=0)] * len(threads), {"m": m, "n": n})
    events = [
        ThreadEvents([event(t, i, do, formulas) for i, do in enumerate(steps)], TRUE, FALSE, {})
        for t, steps in enumerate(threads)
    ]
    found = scenarios(test, formulas, events, lambda: None, ordered)
    assert len(found) == len(set(found))
    return whole(found, len(threads))


def whole(found: list[Scenario], threads: int) -> list[Scenario]:
    """The scenarios of all threads: one of each group of those ``found``, which are about groups."""
    groups = [[s for s in found if s.group == g] for g in dict.fromkeys(s.group for s in found)]
    if len(groups) == 1 and len(groups[0][0].threads) == threads:
        return found
    made = []
    for parts in product(*groups):
        ends = {t: part.ends[t] for part in parts for t in part.threads}
        made.append(
            Scenario(
                frozenset().union(*(part.steps for part in parts)),
                tuple(sorted(item for part in parts for item in part.phases)),
                frozenset().union(*(part.waiting for part in parts)),
                tuple(ends.get(t, True) for t in range(threads)),
                None,
                tuple(sorted(item for part in parts for item in part.tokens)),
                tuple(sorted(item for part in parts for item in part.completed)),
                tuple(sorted(item for part in parts for item in part.next)),
                tuple(id_ for part in parts for id_ in part.order),
                frozenset(range(threads)),
            )
        )
    return made


def only_one(*threads: list[Do], **more: object) -> Scenario:
    (found,) = run(*threads, **more)  # type: ignore[arg-type]
    return found


def short(scenario: Scenario) -> dict[tuple[int, int], int | None]:
    return {(id_.thread, id_.instruction): phase for id_, phase in scenario.phases}


def outcomes(found: list[Scenario]) -> set[tuple[bool | None, ...]]:
    """What the waits of each scenario returned, in the order of threads and instructions."""
    return {
        tuple(a.outcome for a in sorted(s.steps, key=lambda a: a.id) if a.kind == "mb.wait")
        for s in found
        if s.misuse is None
    }


def misuse(*threads: list[Do], **more: object) -> str:
    """The reason of all scenarios, which must all be undefined."""
    reasons = {s.misuse for s in run(*threads, **more)}  # type: ignore[arg-type]
    assert len(reasons) == 1 and None not in reasons, reasons
    return str(reasons.pop())


# ---- phases of an mbarrier -------------------------------------------------------------------------------------------


def test_arrivals_complete_a_phase() -> None:
    found = only_one([arrive(), arrive(), arrive()], m=(2, 0))
    # the object was declared with 2 pending arrivals, and so many are expected in the next phase
    assert short(found) == {(0, 0): 0, (0, 1): 0, (0, 2): 1} and found.completed == ((("m", 0), 1),)


def test_initialised_by_the_program() -> None:
    found = only_one([mb("init", number=1), arrive(), arrive(), parity(1)])
    assert short(found) == {(0, 0): 0, (0, 1): EPOCH, (0, 2): EPOCH + 1, (0, 3): EPOCH + 2}
    assert found.completed == ((("m", 0), 2),) and outcomes([found]) == {(True,)}


def test_tokens_have_the_phase_and_the_pending_count() -> None:
    steps = [arrive(token=True), arrive(number=2, token=True), arrive(token=True)]
    assert dict(only_one(steps, m=(3, 0)).tokens) == {
        EventId(0, 0): 3,
        EventId(0, 1): 2,
        EventId(0, 2): EPOCH | 3,
    }


def test_counts_that_do_not_matter_are_left_out() -> None:
    each = [arrive(token=True), state(0)]
    counted = run(each, each, each, m=(3, 0))
    plain = [replace(each[0], counted=False), each[1]]
    found = run(plain, plain, plain, m=(3, 0))
    assert len(found) < len(counted)
    assert {(s.steps, s.phases) for s in found} == {
        (frozenset(replace(a, counted=False) for a in s.steps), s.phases) for s in counted
    }
    assert all(sorted(v for _, v in s.tokens) == [1, 2, 3] for s in found)


def test_bytes_hold_a_phase_back() -> None:
    steps = [mb("expect", amount=16), arrive(), parity(0), mb("complete", amount=16), parity(0)]
    found = only_one(steps, m=(1, 0))
    assert outcomes([found]) == {(False, True)} and found.completed == ((("m", 0), 1),)
    assert short(found) == {(0, 0): 0, (0, 1): 0, (0, 2): 0, (0, 3): 0, (0, 4): 1}


def test_arrive_expect_tx_expects_first() -> None:
    found = only_one([arrive(amount=8, token=True), mb("complete", amount=8), arrive()], m=(1, 0))
    assert short(found) == {(0, 0): 0, (0, 1): 0, (0, 2): 1}


def test_bytes_that_come_early() -> None:
    found = only_one([mb("complete", amount=8), mb("expect", amount=8), arrive()], m=(1, 0))
    assert found.completed == ((("m", 0), 1),)


def test_no_arrivals_left_but_bytes() -> None:
    found = only_one([parity(0), mb("complete", amount=8), parity(0)], m=(0, 8))
    assert outcomes([found]) == {(False, True)}


def test_drop_lowers_the_expected_count() -> None:
    found = only_one([mb("drop"), arrive(), arrive(), parity(1)], m=(2, 0))
    assert short(found)[0, 2] == 1 and found.completed == ((("m", 0), 2),) and outcomes([found]) == {(True,)}


def test_dropped_altogether() -> None:
    assert "expects" in misuse([mb("drop"), arrive()], m=(1, 0))
    assert only_one([mb("drop")], m=(1, 0)).completed == ((("m", 0), 1),)


def test_increments() -> None:
    fly = arrive(number=1, flies=True)
    found = only_one([mb("increment"), fly, arrive()], m=(1, 0))
    assert found.completed == ((("m", 0), 1),)
    assert "2^20-1" in misuse([mb("increment")], m=((1 << 20) - 1, 0))


def test_no_complete() -> None:
    assert ".noComplete" in misuse([arrive(no_complete=True)], m=(1, 0))
    assert only_one([arrive(no_complete=True)], m=(2, 0)).misuse is None
    assert only_one([arrive(no_complete=True, amount=4)], m=(1, 0)).misuse is None


def test_bounds_of_counts_and_bytes() -> None:
    assert "1..2^20-1" in misuse([arrive(number=0)], m=(2, 0))
    assert "1..2^20-1" in misuse([mb("init", number=1 << 20)])
    assert "1..2^20-1" in misuse([mb("init", number=0)])
    assert "expects" in misuse([arrive(number=3)], m=(2, 0))
    assert "bytes" in misuse([mb("expect", amount=1 << 20)], m=(1, 0))
    assert "bytes" in misuse([mb("complete", amount=1 << 20)], m=(1, 0))
    assert only_one([mb("complete", amount=(1 << 20) - 1)], m=(1, 0)).misuse is None


def test_which_arrival_came_right_before() -> None:
    found = run([arrive(), parity(0)], [arrive()], m=(2, 0), ordered=True)
    a, b, w = EventId(0, 0), EventId(1, 0), EventId(0, 1)
    assert {(s.next, s.order) for s in found} == {
        (((a, b),), (a, w, b)),  # the wait found the phase incomplete
        (((a, b), (b, w)), (a, b, w)),
        (((a, w), (b, a)), (b, a, w)),
    }


def test_an_initialisation_begins_a_new_order() -> None:
    steps = [arrive(), mb("inval"), mb("init", number=1), arrive(), parity(0)]
    found = only_one(steps, m=(1, 0), ordered=True)
    assert found.next == ((EventId(0, 3), EventId(0, 4)),) and [i.instruction for i in found.order] == [0, 1, 2, 3, 4]


# ---- waits -----------------------------------------------------------------------------------------------------------


def test_parity() -> None:
    assert outcomes(run([parity(0), parity(1)], m=(1, 0))) == {(False, True)}  # before phase 0 is "phase -1"
    assert outcomes(run([arrive(), parity(0), parity(1)], m=(1, 0))) == {(True, False)}
    assert outcomes(run([arrive(), arrive(), parity(0), parity(1)], m=(1, 0))) == {(False, True)}


def test_a_wait_may_run_before_or_after_the_phase_completes() -> None:
    found = run([arrive()], [parity(0)], m=(1, 0))
    assert outcomes(found) == {(False,), (True,)}
    assert {(short(s)[1, 0], outcomes([s]).pop()) for s in found} == {(0, (False,)), (1, (True,))}


def test_wait_by_state() -> None:
    assert outcomes(run([arrive(token=True), state(0)], m=(2, 0))) == {(False,)}
    assert outcomes(run([arrive(token=True), state(0)], m=(1, 0))) == {(True,)}
    assert "neither" in misuse([arrive(token=True), arrive(), state(0)], m=(1, 0))


def test_wait_by_a_state_of_unknown_origin() -> None:
    wait = mb("wait", value=1)
    assert outcomes(run([wait], m=(1, 0))) == {(False,)}
    assert outcomes(run([arrive(), wait], m=(1, 0))) == {(True,)}
    assert "neither" in misuse([replace(wait, value=EPOCH | 1)], m=(1, 0))


def test_outcomes_of_a_decided_path() -> None:
    """A thread that goes on only after True: runs in which the wait is too early are none, not deadlocks."""
    formulas = Formulas()
    wait = event(1, 0, parity(0), formulas)
    after = event(1, 1, arrive("n"), formulas, wait.outcome)
    test = setting([Placement(cta=0)] * 2, {"m": (1, 0), "n": (1, 0)})
    one = ThreadEvents([event(0, 0, arrive(), formulas)], TRUE, FALSE, {})
    other = ThreadEvents([wait, after], wait.outcome, FALSE, {})
    found = scenarios(test, formulas, [one, other], lambda: None)
    finished = [s for s in found if None not in s.ends]
    assert outcomes(finished) == {(True,)} and finished[0].completed == ((("m", 0), 1), (("n", 0), 1))
    assert not finished[0].waiting and [s for s in found if s.misuse] == []


# ---- initialisation --------------------------------------------------------------------------------------------------


def test_nobody_initialises() -> None:
    for do in (arrive(), parity(0), mb("inval"), mb("expect", amount=1), mb("increment")):
        assert "not initialised" in misuse([do])


def test_another_thread_initialises() -> None:
    found = only_one([mb("init", number=1)], [arrive()])
    assert found.misuse is None and short(found)[1, 0] == EPOCH


def test_its_own_initialisation_comes_too_late() -> None:
    assert "not initialised" in misuse([arrive(), mb("init", number=1)])


def test_who_initialises_waits_for_ever() -> None:
    assert "not initialised" in misuse([bar("sync"), mb("init", number=1)], [arrive(), bar("sync")])


def test_twice_initialised() -> None:
    assert "already" in misuse([mb("init", number=1), mb("init", number=1)])
    assert "already" in misuse([mb("init", number=1)], m=(1, 0))


def test_initialised_again() -> None:
    found = only_one([mb("inval"), mb("init", number=1), arrive(), arrive()], m=(1, 0))
    assert short(found) == {(0, 1): 0, (0, 2): EPOCH, (0, 3): EPOCH + 1}
    assert found.completed == ((("m", 0), 2),)
    twice = only_one([mb("init", number=1), arrive(), mb("inval"), mb("init", number=1), arrive()])
    assert short(twice)[0, 1] == EPOCH and short(twice)[0, 4] == 2 * EPOCH


def test_between_two_initialisations() -> None:
    found = run([mb("inval"), mb("init", number=1)], [arrive()], m=(1, 0))
    assert {short(s)[1, 0] for s in found} == {0, EPOCH} and all(s.misuse is None for s in found)


# ---- asynchronous arrivals -------------------------------------------------------------------------------------------


def test_asynchronous_arrivals_come_any_time_after_their_issue() -> None:
    fly = mb("complete", amount=16, flies=True)
    found = run([arrive(amount=16), fly, parity(0), parity(0)], m=(1, 0))
    assert outcomes(found) == {(False, False), (False, True), (True, True)}
    assert all(s.completed == ((("m", 0), 1),) for s in found)  # all have happened at the end
    early = run([parity(0), arrive(amount=16), fly], m=(1, 0))
    assert outcomes(early) == {(False,)}


def test_asynchronous_arrivals_go_on_while_their_thread_waits() -> None:
    fly = arrive(flies=True)
    found = run(
        [fly, bar("sync")], [parity(0)], [bar("sync")], m=(1, 0), places=[Placement(cta=i // 2) for i in (0, 2, 4)]
    )
    assert outcomes(found) == {(False,), (True,)}
    stuck = only_one([fly, bar("sync", 0, 64)], m=(1, 0))
    assert stuck.waiting == {EventId(0, 1)} and stuck.completed == ((("m", 0), 1),)


def test_an_asynchronous_arrival_may_come_after_the_initialisation_by_its_own_thread() -> None:
    found = only_one([mb("complete", amount=1, flies=True), mb("init", number=1)])
    assert found.misuse is None and short(found)[0, 0] == EPOCH
    assert "not initialised" in misuse([mb("complete", amount=1, flies=True)])


def test_an_asynchronous_arrival_too_many() -> None:
    found = run([arrive(flies=True), bar("sync", 0, 64), arrive("n")], m=(0, 8), n=(1, 0))
    assert all(s.misuse and "expects" in s.misuse for s in found)
    assert {s.waiting for s in found} == {frozenset({EventId(0, 1)})}
    assert {frozenset(a.id for a in s.steps) for s in found} == {frozenset({EventId(0, 0), EventId(0, 1)})}


# ---- barriers of clusters --------------------------------------------------------------------------------------------


def test_cluster_barrier() -> None:
    found = only_one([ARRIVE, WAIT, ARRIVE, WAIT], [ARRIVE, WAIT, ARRIVE, WAIT])
    assert short(found) == {(t, i): i // 2 for t in (0, 1) for i in range(4)} and not found.waiting


def test_cluster_barrier_across_ctas() -> None:
    near = [Placement(cta=0, cluster=0), Placement(cta=1, cluster=0)]
    assert only_one([ARRIVE, WAIT], [parity(0), ARRIVE], places=near, m=(1, 0)).waiting == frozenset()
    far = [Placement(cta=0, cluster=0), Placement(cta=0, cluster=1)]
    assert short(only_one([ARRIVE, WAIT], [], places=far)) == {(0, 0): 0, (0, 1): 0}


def test_cluster_barrier_waits_for_those_that_have_not_exited() -> None:
    assert not only_one([ARRIVE, WAIT], []).waiting
    assert only_one([ARRIVE, WAIT], [bar("sync", 0, 64)]).waiting == {EventId(0, 1), EventId(1, 0)}
    assert only_one([ARRIVE, WAIT, ARRIVE, WAIT], [ARRIVE]).waiting == frozenset()
    blocked = only_one([ARRIVE, WAIT, ARRIVE, WAIT], [ARRIVE, WAIT, bar("sync", 0, 64), ARRIVE])
    assert blocked.waiting == {EventId(0, 3), EventId(1, 2)}


def test_cluster_barrier_misuse() -> None:
    assert "two barrier.cluster.arrive" in misuse([ARRIVE, ARRIVE])
    assert "without barrier.cluster.arrive" in misuse([WAIT])
    assert "without barrier.cluster.arrive" in misuse([ARRIVE, WAIT, WAIT])
    assert "host" in misuse([ARRIVE], places=[Placement(host=True)])


def test_a_misuse_that_is_certain_ends_the_run_where_the_others_can_go() -> None:
    (found,) = run([WAIT], [arrive(), arrive(), bar("sync", 0, 96), arrive()], m=(1, 0))
    assert (
        found.misuse
        and found.waiting == {EventId(0, 0), EventId(1, 2)}
        and short(found) == {(1, 0): 0, (1, 1): 1, (1, 2): 0}
    )


# ---- barriers of warps -----------------------------------------------------------------------------------------------

LANES = [Placement(cta=0, warp=0)] * 2


def test_warp_barrier() -> None:
    found = only_one([warp(3), warp(3)], [warp(3), warp(3)], places=LANES)
    assert short(found) == {(t, i): i for t in (0, 1) for i in (0, 1)} and not found.waiting


def test_warp_barrier_of_lanes_that_are_not_shown() -> None:
    found = only_one([warp(0xFFFFFFFF)], [warp(0xFFFFFFFF)], places=LANES)
    assert not found.waiting


def test_warp_barrier_of_one_lane_and_of_exited_ones() -> None:
    assert not only_one([warp(1)], [], places=LANES).waiting
    assert not only_one([warp(3)], [], places=LANES).waiting
    assert not only_one([warp(1)]).waiting  # lane 0 of its own warp


def test_warp_barrier_masks_must_agree() -> None:
    assert only_one([warp(3)], [warp(2)], places=LANES).waiting == frozenset()  # lane 1 goes on and exits
    assert only_one([warp(3)], [warp(7), warp(3)], places=[*LANES]).waiting == {EventId(0, 0), EventId(1, 0)}


def test_warp_barrier_misuse() -> None:
    assert "own mask" in misuse([warp(2)], places=LANES[:1])
    assert "own mask" in misuse([warp(3)], [warp(1)], places=LANES)


# ---- together --------------------------------------------------------------------------------------------------------


def test_a_cta_barrier_orders_mbarrier_operations() -> None:
    found = run([mb("init", number=1), bar("sync"), arrive()], [bar("sync"), parity(0)])
    assert outcomes(found) == {(False,), (True,)}
    ordered = run([arrive(), bar("sync")], [bar("sync"), parity(0)], m=(1, 0))
    assert outcomes(ordered) == {(True,)}


def test_counts_of_threads_and_mbarriers() -> None:
    found = run([bar("sync", 0, 64), parity(0)], [arrive(), bar("arrive", 0, 64)], m=(1, 0))
    assert outcomes(found) == {(True,)} and not found[0].waiting


def test_matches_gives_the_condition_of_a_step() -> None:
    formulas = Formulas()
    here = formulas.variable()
    wait = event(0, 0, parity(0), formulas, here)
    one = formulas.variable()
    wait.place = {("m", 0): one, ("n", 0): -one}
    threads = [ThreadEvents([wait], TRUE, FALSE, {})]
    found = scenarios(setting([Placement(cta=0)], {"m": (1, 0), "n": (0, 8)}), formulas, threads, lambda: None)
    conditions = {matches(formulas, wait, a) for s in found for a in s.steps}
    assert conditions == {formulas.all([here, place, -wait.outcome]) for place in (one, -one)}
    assert len(found) == 3  # at either mbarrier, or not at all


def test_operands_that_are_open() -> None:
    formulas = Formulas()
    choice = formulas.variable()
    made = event(0, 0, arrive(), formulas)
    made.count = Domain({1: choice, 2: -choice})
    second = event(0, 1, arrive(), formulas, choice)  # only after a count of 1
    threads = [ThreadEvents([made, second], TRUE, FALSE, {})]
    found = scenarios(setting([Placement(cta=0)], {"m": (2, 0)}), formulas, threads, lambda: None)
    assert {tuple(sorted(short(s).items())) for s in found} == {(((0, 0), 0), ((0, 1), 0)), (((0, 0), 0),)}


def test_many_open_paths_stay_small() -> None:
    """Twenty polls of a phase that may or may not be complete."""
    found = run([parity(0)] * 20, [arrive()], m=(1, 0))
    assert len(found) == 21
    assert calls(lambda: run([parity(0)] * 20, [arrive()], m=(1, 0))) < 50_000


def test_a_long_thread() -> None:
    found = only_one([arrive(), bar("sync")] * 400, m=(1, 0))
    assert found.completed == ((("m", 0), 400),)


def test_speed() -> None:
    """Four threads with six mbarrier operations on two mbarriers each."""
    plain = replace(arrive(token=True), counted=False)
    each = [plain, replace(plain, on="n"), state(0), state(1, "n"), arrive(), arrive("n")]
    assert run(each, each, each, each, m=(4, 0), n=(4, 0))
    assert calls(lambda: run(each, each, each, each, m=(4, 0), n=(4, 0))) < 3_000_000
