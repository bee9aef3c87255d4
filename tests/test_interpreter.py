"""The explicit event layer: arithmetic, dependencies, forks, barriers."""

from __future__ import annotations

import pytest

from ptxmm.events.explicit.barriers import Meeting, meetings
from ptxmm.events.explicit.domains import possible_values, traces
from ptxmm.events.explicit.interpreter import Missing, Undecided, programs, run
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.relations.base import get
from ptxmm.events.explicit.relations.execution import Layout, Scene
from ptxmm.events.explicit.trace import Trace
from ptxmm.events.explicit.values.arithmetic import compute, convert
from ptxmm.events.explicit.values.expressions import Expressions
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Type
from tests.support import parse_one

U8, U32, S32, B32, U64, S64 = (
    Type("u", 8), Type("u", 32), Type("s", 32), Type("b", 32), Type("u", 64), Type("s", 64),
)  # fmt: skip
M32 = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("op", "type_", "args", "result"),
    [
        ("mov", U32, (7,), 7),
        ("add", U32, (M32, 2), 1),
        ("sub", U32, (0, 1), M32),
        ("mul.lo", U32, (0x10000, 0x10001), 0x10000),
        ("mul.hi", U32, (M32, M32), 0xFFFFFFFE),
        ("mul.hi", S32, (M32, M32), 0),
        ("mul.hi", S32, (M32, 1), M32),
        ("mul.wide", U32, (M32, 2), 0x1FFFFFFFE),
        ("mul.wide", S32, (M32, 2), 2**64 - 2),
        ("mad.lo", U32, (3, 4, 5), 17),
        ("mad.hi", U32, (M32, 2, 5), 6),
        ("mad.wide", S32, (M32, 3, 5), 2),
        ("and", B32, (12, 10), 8),
        ("or", B32, (12, 10), 14),
        ("xor", B32, (12, 10), 6),
        ("not", B32, (0,), M32),
        ("neg", S32, (1,), M32),
        ("abs", S32, (M32,), 1),
        ("abs", S32, (0x80000000,), 0x80000000),
        ("shl", B32, (1, 31), 0x80000000),
        ("shl", B32, (1, 32), 0),
        ("shl", B32, (1, M32), 0),
        ("shr", U32, (0x80000000, 31), 1),
        ("shr", U32, (0x80000000, 40), 0),
        ("shr", S32, (0x80000000, 4), 0xF8000000),
        ("shr", S32, (0x80000000, 200), M32),
        ("min", U32, (M32, 1), 1),
        ("min", S32, (M32, 1), M32),
        ("max", U32, (M32, 1), M32),
        ("max", S32, (M32, 1), 1),
        ("inc", U32, (4, 5), 5),
        ("inc", U32, (5, 5), 0),
        ("inc", U32, (6, 5), 0),
        ("dec", U32, (3, 5), 2),
        ("dec", U32, (0, 5), 5),
        ("dec", U32, (6, 5), 5),
        ("exch", U32, (6, 5), 5),
        ("lt", S32, (M32, 0), 1),
        ("lt", U32, (M32, 0), 0),
        ("ge", S32, (M32, 0), 0),
        ("eq", U8, (0x101, 1), 1),
        ("ne", S64, (2**64 - 1, 1), 1),
        ("not", Type("pred", 1), (1,), 0),
    ],
)
def test_arithmetic(op: str, type_: Type, args: tuple[int, ...], result: int) -> None:
    assert compute(op, type_, *args) == result


@pytest.mark.parametrize(
    ("to", "frm", "value", "saturate", "result"),
    [
        (S64, S32, M32, False, 2**64 - 1),
        (U64, U32, M32, False, M32),
        (U64, S32, M32, False, 2**64 - 1),
        (U8, U32, 0x1FF, False, 0xFF),
        (U8, U32, 0x1FF, True, 0xFF),
        (U8, S32, M32, True, 0),
        (S32, U32, M32, True, 0x7FFFFFFF),
        (S32, S64, 2**64 - 5, True, 2**32 - 5),
        (S32, S64, 2**63, True, 0x80000000),
    ],
)
def test_conversion(to: Type, frm: Type, value: int, saturate: bool, result: int) -> None:
    assert convert(value, to, frm, saturate) == result


def test_rewrites_break_dependencies_only_if_asked() -> None:
    for simplify in (True, False):
        e = Expressions(simplify)
        leaf, other = e.leaf(0, None, 32), e.leaf(1, None, 32)
        broken = [
            e.operation("xor", B32, leaf, leaf),
            e.operation("sub", U32, leaf, leaf),
            e.operation("and", B32, leaf, e.constant(0)),
            e.operation("mul.lo", U32, e.constant(0), leaf),
            e.operation("or", B32, leaf, e.constant(M32)),
            e.operation("eq", U32, leaf, leaf),
            e.operation("lt", U32, leaf, leaf),
            e.operation("shl", B32, leaf, e.constant(32)),
            e.operation("shr", U32, leaf, e.constant(33)),
        ]
        assert [n.reads for n in broken] == [0 if simplify else 1] * len(broken)
        assert e.select(leaf, other, other).reads == (2 if simplify else 3)
        kept = [
            e.operation("shr", S32, leaf, e.constant(33)),
            e.operation("or", B32, leaf, e.constant(1)),
            e.operation("xor", B32, leaf, e.joined(leaf, 0, 32)),
            e.operation("add", U32, leaf, e.constant(0)),
        ]
        assert all(n.reads == 1 for n in kept)
        assert e.operation("add", U32, leaf, other) is e.operation("add", U32, leaf, other)


def only(text: str, **options: bool) -> tuple[Test, list[Trace]]:
    """The paths of P0 of a test."""
    test = parse_one(text)
    program = programs(test)[0]
    try:
        return test, traces(program, None, 3, Readings(simplify=options.get("simplify", True)), lambda: None)
    except Undecided:
        domains = possible_values(test, programs(test), 3, Readings(), lambda: None)
        return test, traces(program, domains, 3, Readings(), lambda: None)


def thread(*lines: str) -> str:
    """A test of one typed thread over x and y."""
    return (
        "PTX t\n{ .global .u32 x = 0; .global .u32 y = 0; .global .u64 z = 0; }\nP0 @ cta 0 {\n"
        + "".join(f"{line};\n" if not line.endswith(":") else f"{line}\n" for line in lines)
        + "}\nexists (x == 0)\n"
    )


def test_dependencies_of_a_straight_line() -> None:
    _, (trace,) = only(thread("ld.u32 r0, [x]", "add.u32 r1, r0, 1", "st.u32 [y], r1", "st.u32 [x], 1"))
    assert [(e.kind, e.data, e.ctrl) for e in trace.events] == [("R", 0, 0), ("W", 1, 0), ("W", 0, 0)]


def test_a_predicated_store_forks_and_depends_by_control() -> None:
    _, found = only(thread("ld.u32 r0, [x]", "setp.eq.u32 p, r0, 1", "@p st.u32 [y], 2", "st.u32 [x], 3"))
    (with_store,) = [t for t in found if len(t.events) == 3]
    (without,) = [t for t in found if len(t.events) == 2]
    assert [e.ctrl for e in with_store.events] == [0, 1, 0]
    assert [v for _, v, _ in with_store.constraints] == [1] and [v for _, v, _ in without.constraints] == [0]


def test_control_ends_where_branches_join_and_marks_what_they_assign() -> None:
    _, found = only(thread(
        "ld.u32 r0, [x]", "setp.eq.u32 p, r0, 1", "mov.u32 r1, 5", "@p bra L", "mov.u32 r1, 6", "st.u32 [x], 9",
        "L:", "st.u32 [y], 1", "st.u32 [y], r1",
    ))  # fmt: skip
    assert len(found) == 2
    for trace in found:
        before, free, marked = trace.events[:-2], trace.events[-2], trace.events[-1]
        assert all(e.ctrl == 1 for e in before if e.kind == "W")
        assert (free.ctrl, free.data) == (0, 0)
        assert (marked.ctrl, marked.data) == (0, 1)


def test_predicated_arithmetic_selects_without_a_fork() -> None:
    _, (trace,) = only(thread(
        "ld.u32 r0, [x]", "setp.eq.u32 p, r0, 1", "mov.u32 r1, 5", "@p mov.u32 r1, 6", "@!p mov.u32 r2, 0",
        "st.u32 [y], r1", "st.u32 [x], r2",
    ))  # fmt: skip
    assert trace.constraints == []
    assert [e.data for e in trace.events] == [0, 1, 0]  # r2 is 0 either way: equal arms


def test_cas_forks_and_a_failing_one_writes_nothing() -> None:
    _, found = only(thread("ld.u32 r0, [y]", "atom.relaxed.gpu.cas.b32 r1, [x], r0, 2"))
    kinds = sorted("".join(e.kind for e in t.events) for t in found)
    assert kinds == ["RR", "RRW"]
    (success,) = [t for t in found if len(t.events) == 3]
    assert success.events[1].ctrl == 0 and success.events[2].ctrl == 3 and success.events[2].data == 0


def test_addresses_fork_over_the_values_memory_may_hold() -> None:
    text = thread("mov.u64 rd1, y", "st.u64 [z], rd1", "ld.u64 rd0, [z]", "st.u32 [rd0], 7")
    test = parse_one(text)
    with pytest.raises(Undecided):
        traces(programs(test)[0], None, 3, Readings(), lambda: None)
    _, found = only(text)
    stores = [t.events[-1] for t in found if t.outside is None]
    assert [(e.cell, e.addr) for e in stores] == [(("y", 0, 4), 1)]
    (lost,) = [t for t in found if t.outside is not None]
    assert lost.outside is not None and lost.outside[0] == "P0 line 7: access outside every object (address 0x0)"


def test_loops_are_cut_and_spin_loops_keep_their_last_two_rounds() -> None:
    _, found = only(thread("L:", "ld.u32 r0, [x]", "setp.eq.u32 p, r0, 0", "@p bra L", "st.u32 [y], 1"))
    assert sorted((t.end, len(t.reads)) for t in found) == [("end", 1), ("end", 2), ("spin", 2)]
    assert {t.events[-1].id for t in found if t.end == "end"} == {EventId(0, 3)}  # behind the loop rounds do not count
    _, found = only(thread("L:", "ld.u32 r0, [x]", "st.u32 [y], 1", "setp.eq.u32 p, r0, 0", "@p bra L"))
    assert sorted((t.end, len(t.reads)) for t in found) == [("cut", 4), *(("end", n) for n in (1, 2, 3, 4))]
    assert found[-1].events[0].id == EventId(0, 0)


def test_a_run_with_values_is_an_interpreter() -> None:
    test = parse_one(thread("ld.u32 r0, [x]", "mul.lo.u32 r1, r0, 3", "atom.add.u32 r2, [y], r1", "st.u32 [x], r2"))
    program = programs(test)[0]
    trace = run(program, values={EventId(0, 0): 5, EventId(0, 2): 100})
    assert {n: v.value for n, v in trace.registers.items()} == {"r0": 5, "r1": 15, "r2": 100}
    assert [e.value.value for e in trace.events if e.kind == "W" and e.value is not None] == [115, 100]
    with pytest.raises(Missing):
        run(program, values={EventId(0, 0): 5})


def test_cells_are_the_coarsest_parts_of_all_accesses() -> None:
    test = parse_one(
        "PTX t\n{ .global .u32 x = 0x04030201; .global .u32 y = 0; }\nP0 @ cta 0 {\nst.u32 [x], 1;\nld.u16 r0, [x+2];\n"
        "st.u32 [y], 1;\n}\nexists (x == 0)\n"
    )
    trace = traces(programs(test)[0], None, 3, Readings(), lambda: None)[0]
    layout = Layout(Scene(test), [trace.events])
    assert list(layout.cells) == [("x", 0, 2), ("x", 2, 2), ("y", 0, 4)] and not layout.simple
    algebra, initial = layout.algebra, layout.initial_first
    assert [layout.writes[c] for c in layout.cells] == [[initial, 0], [initial + 1, 0], [initial + 2, 2]]
    both = {(0, 1), (1, 0)}
    assert both <= set(algebra.pairs(get(layout, "ovl"))) and not both & set(algebra.pairs(get(layout, "loc")))
    # An initial write is of the same address as each access that covers its bytes.
    assert (initial, 1) not in set(algebra.pairs(get(layout, "vloc")))
    assert {(initial, 0), (initial + 1, 0), (initial + 1, 1)} <= set(algebra.pairs(get(layout, "vloc")))


# Barriers.


def meet(text: str) -> list[Meeting]:
    """How the barriers of a test without forks turn out."""
    test = parse_one(text)
    paths = [traces(p, None, 3, Readings(), lambda: None)[0] for p in programs(test)]
    arrivals = [[e for e in t.events if e.kind == "BA"] for t in paths]
    return list(meetings(test, Scene(test).places, arrivals, [True] * len(paths), lambda: None))


def columns(*threads: str, head: str = "P{} @ cta 0", dialect: bool = False) -> str:
    """A test with one column per thread; instructions are separated by semicolons."""
    rows = [[c.strip() for c in t.split(";")] for t in threads]
    height = max(map(len, rows))
    lines = [" | ".join(head.format(i) for i in range(len(threads))) + " ;"]
    lines += [" | ".join(r[k] if k < len(r) else "" for r in rows) + " ;" for k in range(height)]
    init = "{ x = 0; }" if dialect else "{ .global .u32 x = 0; }"
    return f"PTX t\n{init}\n" + "\n".join(lines) + "\nexists (x == 0)\n"


def test_phases_count_generations() -> None:
    (m,) = meet(columns("bar.sync 0; bar.sync 0", "bar.sync 0; bar.sync 0"))
    assert m.phases == {EventId(0, 0): 0, EventId(0, 1): 1, EventId(1, 0): 0, EventId(1, 1): 1} and not m.waiting


def test_a_barrier_does_not_wait_for_exited_threads() -> None:
    (m,) = meet(columns("bar.sync 0; bar.sync 0", "bar.sync 0"))
    assert not m.waiting and m.phases[EventId(0, 1)] == 1


def test_a_barrier_with_a_count_waits_for_exited_threads() -> None:
    (m,) = meet(columns("bar.sync 0, 64; bar.sync 0, 64", "bar.sync 0, 64"))
    assert m.waiting == {0} and m.reached == (2, 1)


def test_different_barriers_deadlock() -> None:
    (m,) = meet(columns("bar.sync 0", "bar.sync 1"))
    assert m.waiting == {0, 1} and m.misuse is None


def test_every_pair_of_arrivals_may_form_a_phase() -> None:
    found = meet(columns("bar.sync 0, 64", "bar.sync 0, 64", "bar.sync 0, 64; bar.sync 0, 64"))
    phases = {(*(m.phases[EventId(t, 0)] for t in range(3)), m.phases.get(EventId(2, 1)), *m.waiting) for m in found}
    assert phases == {(0, 1, 0, 1), (1, 0, 0, 1), (0, 0, 1, None, 2)}


def test_misuse_is_found() -> None:
    found = meet(columns("bar.arrive 0, 64; bar.arrive 0, 64", "bar.sync 0, 64; bar.sync 0, 64"))
    assert {m.misuse for m in found} == {None, "two arrivals of one warp in one phase of barrier 0"}
    found = meet(columns("bar.sync 0, 64", "bar.sync 0, 96"))
    assert {m.misuse for m in found} == {"two different thread counts in one phase of barrier 0"}


def test_threads_of_a_warp_arrive_as_one() -> None:
    (m,) = meet(columns("bar.sync 0, 64", "bar.sync 0, 64", "bar.sync 0, 64").replace("P0 @", "P0 @ warp 0,").replace(
        "P1 @", "P1 @ warp 0,"
    ))  # fmt: skip
    assert not m.waiting and set(m.phases.values()) == {0}


def test_groups_of_the_dialect() -> None:
    (m,) = meet(columns("bar.cta.sync 1", "bar.cta.sync 2", dialect=True))
    assert not m.waiting and set(m.phases.values()) == {0}
    found = meet(columns("bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2", dialect=True))
    assert len(found) == 4 and sum(None in m.phases.values() for m in found) == 3
    (m,) = meet(columns("bar.cta.sync 1, 1, 3", "bar.cta.sync 1, 1, 3", dialect=True))
    assert m.waiting == {0, 1}
    (m,) = meet(columns("bar.cta.arrive 1; bar.cta.sync 0", "bar.cta.sync 0; bar.cta.arrive 1", dialect=True))
    assert not m.waiting
