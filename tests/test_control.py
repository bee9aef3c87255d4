"""Control flow of threads: joins, registers assigned in branches, and which loops are spin loops."""

from __future__ import annotations

from typing import Literal

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.program.graph import Graph, dominators, post_dominators, strong_components
from ptxmm.program.shared.control import ControlFlow, control_flow
from ptxmm.program.shared.idempotent import idempotent_atomics
from ptxmm.program.test import Placement, Thread
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import (
    Address,
    Alu,
    AsyncWait,
    Atomic,
    Barrier,
    Branch,
    ClusterBarrier,
    Compare,
    CopyAsync,
    Exit,
    Fence,
    Guard,
    Imm,
    Load,
    MbarrierArrive,
    MbarrierInitFence,
    MbarrierWait,
    Op,
    Operand,
    ProxyFence,
    Reg,
    Source,
    Store,
    Sym,
    Type,
    WarpBarrier,
)
from tests.reference_flow import Flow

S64 = Type("s", 64)
PRED = Type("pred", 1)
SRC = Source(Span(1, 1, 2), "")
MBARRIER = Address(Sym("b"))


def _operand(value: int | str) -> Operand:
    return Imm(value) if isinstance(value, int) else Reg(value)


def ld(dst: str, at: str = "x", guard: Guard | None = None) -> Load:
    base = Reg(at) if at.startswith("r") else Sym(at)
    return Load((Reg(dst),), Address(base), S64, "relaxed", "gpu", None, SRC, guard)


def sto(value: int | str = 1) -> Store:
    return Store(Address(Sym("x")), (_operand(value),), S64, "relaxed", "gpu", None, SRC)


def cas(dst: str | None, new: int | str = 1) -> Atomic:
    reg = Reg(dst) if dst else None
    values = ((Imm(0), _operand(new)),)
    return Atomic((reg,), "cas", Address(Sym("x")), values, S64, "acquire", "gpu", None, True, SRC)


def atomic(op: str, dst: str | None) -> Atomic:
    returned = (Reg(dst),) if dst else ()
    return Atomic(returned, op, Address(Sym("x")), ((Imm(1),),), S64, "relaxed", "gpu", None, dst is not None, SRC)


def mov(dst: str, value: int | str, guard: Guard | None = None) -> Alu:
    return Alu("mov", S64, Reg(dst), (_operand(value),), SRC, guard)


def add(dst: str, a: int | str, b: int | str) -> Alu:
    return Alu("add", S64, Reg(dst), (_operand(a), _operand(b)), SRC)


def beq(a: int | str, b: int | str, target: int) -> Branch:
    return Branch(target, Compare("eq", S64, _operand(a), _operand(b)), SRC)


def bra(target: int, guard: Guard | None = None) -> Branch:
    return Branch(target, None, SRC, guard)


def leave(guard: Guard | None = None) -> Exit:
    return Exit(SRC, guard)


P = Guard("p")


def thread_of(*body: Op, registers: dict[str, Type] | None = None) -> Thread:
    named = {name: type_ for op in body for name, type_ in (*uses(op), *definitions(op))}
    return Thread("P0", Placement(), body, named | (registers or {}))


def flow(*body: Op, registers: dict[str, Type] | None = None) -> ControlFlow:
    return control_flow(thread_of(*body, registers=registers))


def test_straight_line_is_empty() -> None:
    assert flow() == flow(ld("r0"), sto("r0")) == ControlFlow({}, {}, frozenset(), {})


@given(
    st.integers(1, 9).flatmap(
        lambda end: st.lists(st.lists(st.integers(0, end), max_size=3, unique=True), min_size=end, max_size=end)
    )
)
def test_dominators_and_components_of_any_graph(edges: list[list[int]]) -> None:
    end = len(edges)
    after = (*(tuple(targets) for targets in edges), ())
    before = tuple(tuple(pc for pc in range(end) if node in after[pc]) for node in range(end + 1))
    graph = Graph(after, before)
    drawn = nx.DiGraph((pc, target) for pc in range(end) for target in after[pc])
    drawn.add_nodes_from(range(end + 1))
    known = nx.immediate_dominators(drawn, 0)
    assert dominators(graph) == {node: known[node] for node in known if node != 0}
    stuck = set(range(end)) - nx.ancestors(drawn, end)
    drawn_on = drawn.copy()
    drawn_on.add_edges_from((pc, end) for pc in stuck)
    known = nx.immediate_dominators(drawn_on.reverse(), end)
    assert post_dominators(graph) == {node: known[node] for node in known if node != end}
    number = strong_components(graph)
    groups = {frozenset(pc for pc in range(end + 1) if number[pc] == n) for n in number}
    assert groups == set(map(frozenset, nx.strongly_connected_components(drawn)))
    assert all(number[pc] <= number[target] for pc in range(end) for target in after[pc])


def test_if_without_else() -> None:
    got = flow(ld("r0"), beq("r0", 0, 3), mov("r1", 1), sto())
    assert got.join == {1: 3}
    assert got.assigned == {1: frozenset({"r1"})}
    assert got.backward == frozenset() and got.spin == {}


def test_if_with_else() -> None:
    got = flow(ld("r0"), beq("r0", 0, 4), mov("r1", 1), bra(5), mov("r2", 2), sto())
    assert got.join == {1: 5}
    assert got.assigned == {1: frozenset({"r1", "r2"})}


def test_nested_ifs() -> None:
    got = flow(beq("r0", 0, 4), beq("r1", 0, 3), mov("r2", 1), mov("r3", 1), sto())
    assert got.join == {0: 4, 1: 3}
    assert got.assigned == {0: frozenset({"r2", "r3"}), 1: frozenset({"r2"})}


def test_branch_to_the_next_instruction_and_to_the_end() -> None:
    got = flow(beq("r0", 0, 1), beq("r0", 0, 3), mov("r1", 1))
    assert got.join == {0: 1, 1: 3}
    assert got.assigned == {0: frozenset(), 1: frozenset({"r1"})}


def test_guarded_exit_joins_at_the_end() -> None:
    got = flow(leave(P), mov("r1", 1), sto())
    assert got.join == {0: 3}
    assert got.assigned == {0: frozenset({"r1"})}


def test_plain_exit_and_plain_branch_have_no_join() -> None:
    got = flow(bra(2), mov("r1", 1), leave(), mov("r2", 1))
    assert got.join == {} and got.assigned == {}


def test_exit_in_one_arm() -> None:
    got = flow(beq("r0", 0, 3), mov("r1", 1), leave(), mov("r2", 1))
    assert got.join == {0: 4}
    assert got.assigned == {0: frozenset({"r1", "r2"})}


def test_conditional_code_in_unreachable_part() -> None:
    got = flow(leave(), beq("r0", 0, 3), mov("r1", 1))
    assert got.join == {1: 3}
    assert got.assigned == {1: frozenset({"r1"})}


def test_loop_join_is_its_exit() -> None:
    got = flow(ld("r0"), add("r1", "r1", 1), beq("r0", 0, 0), sto())
    assert got.join == {2: 3}
    assert got.assigned == {2: frozenset({"r0", "r1"})}
    assert got.backward == {2}


def test_loop_with_exit_in_the_middle() -> None:
    got = flow(ld("r0"), beq("r0", 1, 4), ld("r1"), bra(0), sto())
    assert got.join == {1: 4}
    assert got.assigned == {1: frozenset({"r0", "r1"})}
    assert got.backward == {3}


def test_the_branch_that_leaves_a_loop() -> None:
    assert flow(ld("r0"), beq("r0", 0, 3), bra(0), sto()).leaving == {1}
    assert flow(ld("r0"), sto(), beq("r0", 0, 0), sto()).leaving == {2}
    assert flow(ld("r0"), leave(P), beq("r0", 0, 0), sto()).leaving == {1, 2}


def test_a_branch_forward_decides_about_no_loop() -> None:
    assert flow(ld("r0"), beq("r0", 0, 3), mov("r1", 1), sto()).leaving == frozenset()
    # in a loop, and around one
    assert flow(ld("r0"), beq("r0", 0, 3), mov("r1", 1), beq("r1", 0, 0), sto()).leaving == {3}
    assert flow(ld("r0"), beq("r0", 0, 4), ld("r1"), beq("r1", 0, 2), sto()).leaving == {3}


def test_a_jump_back_that_closes_no_loop_decides_about_none() -> None:
    got = flow(bra(3), mov("r1", 1), bra(5), ld("r0"), beq("r0", 0, 1), sto())
    assert got.backward == {4} and got.leaving == frozenset()


def test_a_branch_that_may_go_round_before_it_comes_to_the_one_that_leaves() -> None:
    # 1 goes back by way of 2, or on to 3, which leaves: all of it decides
    assert flow(ld("r0"), beq("r0", 0, 3), bra(0), beq("r0", 1, 0), sto()).leaving == {1, 3}


def test_inner_and_outer_loops_are_left_by_their_own_branches() -> None:
    got = flow(mov("r1", 0), ld("r0"), beq("r0", 0, 1), beq("r1", 0, 0), sto())
    assert got.leaving == {2, 3}


def test_infinite_loop() -> None:
    got = flow(bra(0))
    assert got.backward == {0} and got.spin == {0: 0} and got.join == {}


def test_infinite_loop_with_conditional_branch_inside() -> None:
    got = flow(ld("r0"), beq("r0", 0, 3), sto(), bra(0))
    assert got.join == {1: 4}
    assert got.spin == {}


def test_branch_into_an_infinite_loop() -> None:
    got = flow(beq("r0", 0, 2), bra(3), bra(2), sto())
    assert got.join == {0: 4}


# Spin loops.


def test_plain_spin() -> None:
    assert flow(ld("r0"), beq("r0", 0, 0), ld("r1")).spin == {1: 0}


def test_cas_spin() -> None:
    assert flow(cas("r0"), beq("r0", 1, 0), sto()).spin == {1: 0}


def test_typed_spin_with_predicate() -> None:
    from ptxmm.ptx.ops import SetPredicate

    setp = SetPredicate("eq", S64, Reg("p"), None, Reg("r0"), Imm(0), SRC)
    assert flow(ld("r0"), setp, bra(0, P), sto(), registers={"r0": S64, "p": PRED}).spin == {2: 0}


def test_fences_are_allowed() -> None:
    body = (ld("r0"), Fence("acq_rel", "gpu", SRC), ProxyFence("alias", SRC), beq("r0", 0, 0))
    assert flow(*body).spin == {3: 0}


@pytest.mark.parametrize(
    "inside",
    [
        sto(),
        atomic("add", "r1"),
        atomic("exch", None),
        Barrier("sync", Imm(0), None, None, SRC),
        Barrier("arrive", Imm(0), Imm(64), None, SRC),
        WarpBarrier(Imm(1), SRC),
        ClusterBarrier("arrive", "release", SRC),
        MbarrierArrive(None, MBARRIER, None, None, "release", "cta", False, False, None, SRC),
        CopyAsync(Address(Sym("s")), Address(Sym("x")), 4, None, None, False, SRC),
        AsyncWait("cp.async", 0, False, SRC),
    ],
)
def test_writes_and_barriers_are_not(inside: Op) -> None:
    got = flow(ld("r0"), inside, beq("r0", 0, 0))
    assert got.spin == {} and got.backward == {2}


@pytest.mark.parametrize("kind", ["test_wait", "try_wait"])
def test_waiting_for_an_mbarrier_is_a_spin(kind: Literal["test_wait", "try_wait"]) -> None:
    wait = MbarrierWait(kind, Reg("p"), MBARRIER, None, Imm(0), "acquire", "cta", SRC)
    registers = {"p": PRED}
    assert flow(wait, bra(0, Guard("p", True)), registers=registers).spin == {1: 0}
    assert flow(wait, MbarrierInitFence(SRC), bra(0, Guard("p", True)), registers=registers).spin == {2: 0}


def test_a_store_on_a_path_of_the_loop() -> None:
    assert flow(ld("r0"), beq("r0", 1, 3), sto(), beq("r0", 0, 0)).spin == {}


def test_a_store_after_the_exit_is_not_in_the_loop() -> None:
    assert flow(ld("r0"), beq("r0", 1, 3), bra(0), sto()).spin == {2: 0}


def test_counter_is_live_at_the_header() -> None:
    assert flow(ld("r0"), add("r1", "r1", 1), beq("r0", 0, 0)).spin == {}


def test_bounded_retry_is_not_a_spin() -> None:
    body = (mov("r1", 0), ld("r0"), add("r1", "r1", 1), beq("r0", 1, 5), beq("r1", 0, 1))
    assert flow(*body).spin == {}


def test_last_value_survives_when_written_only_on_some_path() -> None:
    # r1 shows at the end what the round before the last read
    assert flow(ld("r0"), beq("r0", 1, 4), ld("r1"), bra(0)).spin == {}


def test_register_never_used_elsewhere_but_observed_at_the_end() -> None:
    # the same with a register that is overwritten after the loop: then it is dead
    assert flow(ld("r0"), beq("r0", 1, 4), ld("r1"), bra(0), mov("r1", 0)).spin == {3: 0}


def test_guarded_write_does_not_kill() -> None:
    assert flow(ld("r0", guard=P), beq("r0", 0, 0)).spin == {}
    assert flow(mov("r0", 0), ld("r0", guard=P), beq("r0", 0, 0)).spin == {2: 0}


def test_guard_set_in_the_loop_and_used_before() -> None:
    from ptxmm.ptx.ops import SetPredicate

    setp = SetPredicate("eq", S64, Reg("p"), None, Reg("r0"), Imm(0), SRC)
    registers = {"r0": S64, "p": PRED}
    assert flow(mov("r0", 0), ld("r0", guard=P), setp, bra(0, P), registers=registers).spin == {}


def test_register_of_the_final_state_only() -> None:
    # r2 is in the thread's registers and is not written at all: it may be live, nobody minds
    assert flow(ld("r0"), beq("r0", 0, 0), registers={"r0": S64, "r2": S64}).spin == {1: 0}


def test_address_from_before_the_loop_and_address_loaded_in_it() -> None:
    assert flow(mov("r1", "r2"), ld("r0", "r1"), beq("r0", 0, 1)).spin == {2: 1}
    assert flow(ld("r1"), ld("r0", "r1"), beq("r0", 0, 0)).spin == {2: 0}
    # walking a list: r1 is read in the next round
    assert flow(ld("r1"), ld("r1", "r1"), beq("r1", 0, 1)).spin == {}


def test_two_backward_branches_to_one_header() -> None:
    got = flow(ld("r0"), beq("r0", 0, 0), cas("r0"), beq("r0", 1, 0), sto())
    assert got.spin == {1: 0, 3: 0}


def test_two_backward_branches_one_after_a_store() -> None:
    got = flow(ld("r0"), beq("r0", 0, 0), sto(), beq("r0", 1, 0))
    assert got.spin == {1: 0} and got.backward == {1, 3}


def test_registers_of_the_other_loop_of_the_header() -> None:
    # r1 counts the rounds over 4; it is live at the header, but the loop 0..1 does not write it
    got = flow(ld("r0"), beq("r0", 0, 0), add("r1", "r1", 1), bra(4), beq("r0", 2, 0))
    assert got.spin == {1: 0}


def test_nested_spins() -> None:
    got = flow(ld("r0"), ld("r1"), beq("r1", 0, 1), beq("r0", 0, 0), sto())
    assert got.spin == {2: 1, 3: 0}


def test_inner_spin_in_an_outer_counting_loop() -> None:
    got = flow(mov("r2", 2), ld("r0"), beq("r0", 0, 1), add("r2", "r2", -1), beq("r2", 1, 1), sto())
    assert got.spin == {2: 1} and got.backward == {2, 4}


def test_inner_loop_with_a_store_spoils_the_outer_one() -> None:
    assert flow(ld("r0"), ld("r1"), sto(), beq("r1", 0, 1), beq("r0", 0, 0)).spin == {}


def test_loop_with_two_entries() -> None:
    # 0 jumps into the middle: 1 does not dominate 3
    got = flow(beq("r9", 0, 2), ld("r0"), ld("r1"), beq("r1", 0, 1))
    assert got.spin == {} and got.backward == {3}


def test_unreachable_loop() -> None:
    got = flow(leave(), ld("r0"), beq("r0", 0, 1))
    assert got.spin == {} and got.backward == {2}


def test_guarded_exit_in_the_loop() -> None:
    assert flow(ld("r0"), leave(P), bra(0)).spin == {2: 0}


_op = st.one_of(
    st.sampled_from([ld("r0"), ld("r1"), sto(), cas("r0"), add("r1", "r1", 1), mov("r0", 0, P), leave(P), leave()]),
    st.tuples(st.integers(0, 12), st.sampled_from(["plain", "eq", "guard"])),
)


@given(st.lists(_op, max_size=12))
def test_any_shape(items: list[Op | tuple[int, str]]) -> None:
    """Joins are post-dominators, by brute force over paths, and nothing crashes."""
    body: list[Op] = []
    for item in items:
        if isinstance(item, tuple):
            target, kind = min(item[0], len(items)), item[1]
            branch = beq("r0", 0, target) if kind == "eq" else bra(target, P if kind == "guard" else None)
            body.append(branch)
        else:
            body.append(item)
    got = flow(*body)
    end = len(body)

    def after(pc: int) -> set[int]:
        op = body[pc]
        if isinstance(op, Exit):
            return {end, pc + 1} if op.guard else {end}
        if isinstance(op, Branch):
            return {op.target, pc + 1} if op.guard or op.condition else {op.target}
        return {pc + 1}

    def reach(start: set[int], avoid: int) -> set[int]:
        seen: set[int] = set()
        todo = [s for s in start if s != avoid]
        while todo:
            pc = todo.pop()
            if pc not in seen:
                seen.add(pc)
                todo += [s for s in (after(pc) if pc < end else ()) if s != avoid]
        return seen

    plain = Flow(thread_of(*body))
    for field in ("join", "assigned", "spin", "leaving", "skipping", "backward"):
        assert getattr(got, field) == getattr(plain, field), field
    for pc, join in got.join.items():
        others = reach(after(pc), join)
        assert join == end or end not in others
        assert got.assigned[pc] == {name for i in others if i < end for name, _ in definitions(body[i])}
        if join != end:  # the first one: every other post-dominator comes after the join
            for other in others - {pc}:
                assert end in reach(after(pc), other) or other == pc
    assert set(got.spin) <= got.backward
    for pc, header in got.spin.items():
        branch_op = body[pc]
        assert isinstance(branch_op, Branch) and branch_op.target == header
        assert pc in reach({0}, -1) and (pc == header or pc not in reach({0}, header))


SPINS = [
    r"""PTX Flag
{ x = 0; flag = 0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0           ;
 st.weak x, 1           | L:                       ;
 st.relaxed.gpu flag, 1 | ld.relaxed.gpu r0, flag  ;
                        | beq r0, 0, L             ;
                        | ld.weak r1, x            ;
exists (P1:r1 == 0)
""",
    r"""PTX Lock
{ x = 0; lock = 0; }
 P0@cta 0,gpu 0                      | P1@cta 0,gpu 0                      ;
 L:                                  | K:                                  ;
 atom.acquire.cta.cas r0, lock, 0, 1 | ld.relaxed.cta r1, lock             ;
 bne r0, 0, L                        | bne r1, 0, K                        ;
 st.weak x, 1                        | atom.acquire.cta.cas r0, lock, 0, 1 ;
 st.release.cta lock, 0              | bne r0, 0, K                        ;
                                     | ld.weak r2, x                       ;
                                     | st.release.cta lock, 0              ;
exists (P1:r2 == 0)
""",
    r"""PTX Two locations
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.relaxed.gpu x, 1 | L:                   ;
 st.relaxed.gpu y, 1 | ld.relaxed.gpu r0, x ;
 st.relaxed.gpu x, 2 | ld.relaxed.gpu r1, y ;
                     | beq r0, r1, L        ;
exists (P1:r1 == 0)
""",
    r"""PTX Lock by exchange
{ x = 0; lock = 0; }
 P0@cta 0,gpu 0                    | P1@cta 1,gpu 0                    ;
 L:                                | K:                                ;
 atom.acquire.gpu.exch r0, lock, 1 | atom.acquire.gpu.exch r0, lock, 1 ;
 bne r0, 0, L                      | bne r0, 0, K                      ;
 st.weak x, 1                      | ld.weak r2, x                     ;
 st.release.gpu lock, 0            | st.release.gpu lock, 0            ;
exists (P1:r2 == 0)
""",
    r"""PTX Polling by addition
{ x = 0; flag = 0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0                  | P2@cta 2,gpu 0           ;
 st.weak x, 1           | L:                              | ld.acquire.gpu r0, flag  ;
 st.release.gpu flag, 1 | atom.acq_rel.gpu.add r0, flag, 0 | ld.weak r1, x           ;
                        | beq r0, 0, L                    |                          ;
                        | ld.weak r1, x                   |                          ;
exists (P1:r1 == 0)
""",
    r"""PTX Polling by minimum
{ x = 5; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0                ;
 st.weak y, 1        | L:                            ;
 fence.acq_rel.gpu   | atom.relaxed.gpu.min r0, x, 9 ;
 st.relaxed.gpu x, 2 | beq r0, 5, L                  ;
                     | fence.acq_rel.gpu             ;
                     | ld.weak r1, y                 ;
exists (P1:r1 == 0)
""",
]


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
@pytest.mark.parametrize("text", SPINS)
def test_spin_loops_keep_all_final_states(text: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unrolling the same loops as ordinary ones finds the same final states, and is bounded."""
    from ptxmm.events.explicit import interpreter
    from ptxmm.events.symbolic import threads
    from ptxmm.formats import parse
    from tests.support import ask, model_named

    (test,) = parse(text)
    assert any(control_flow(t, quiet).spin for t, quiet in zip(test.threads, idempotent_atomics(test), strict=True))
    model = model_named("ptx-7.5")
    answer = ask(engine, test, model, unroll=1)
    assert not answer.bounded and answer.states
    for module in (interpreter, threads):
        monkeypatch.setattr(module, "control_flow", lambda thread, *_: replace(control_flow(thread), spin={}))
    (again,) = parse(text)  # of a test that it has seen an engine keeps what it has executed
    unrolled = ask(engine, again, model, unroll=1)
    assert unrolled.bounded and unrolled.states == answer.states
