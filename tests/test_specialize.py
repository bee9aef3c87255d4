"""What is left of small kernels for one thread: joins, guards, loops of every kind, branches, calls, addresses.

``left`` are the instructions that are left, ``ends`` the final states of ``out``, which both engines agree on.
"""

from __future__ import annotations

import re

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.modules.extract import skeleton
from ptxmm.formats.modules.flow import analyse
from ptxmm.formats.modules.propagate import MAX_OPEN
from ptxmm.program.test import Test
from tests.support import model_named, parse_one

HEAD = """// ptxmm: args = ["inp", "out"]
// ptxmm: {launch}
// ptxmm: [objects]
// ptxmm: inp = {{ type = "u32", count = 4, init = {inp} }}
// ptxmm: out = {{ type = "u32", count = 4, align = 16, init = [9, 9, 9, 9] }}
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 9)"
.version 8.5
.target sm_90
.address_size 64
{before}
.visible .entry k(.param .u64 a, .param .u64 b)
{{
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
"""


def kernel(body: str, inp: tuple[int, ...] = (0, 0, 0, 0), before: str = "", launch: str = "grid = 1") -> Test:
    """A kernel of one thread with the arrays ``inp`` (%rd1) and ``out`` (%rd2, 9 at first)."""
    (test,) = parse(HEAD.format(inp=list(inp), before=before, launch=launch) + body + "\n  ret;\n}\n", "k.ptx")
    return test


def left(body: str, before: str = "", launch: str = "grid = 1") -> list[str]:
    """The instructions and labels of its first thread as ``ptxmm extract`` writes them."""
    text = skeleton(kernel(body, before=before, launch=launch)).split("}\n", 1)[1]
    column = [row.partition("|")[0].strip(" ;") for row in text.splitlines() if row.endswith(";") and " @ " not in row]
    return [re.sub(r"\s+", " ", row) for row in column if row]


def ends(body: str, inp: tuple[int, ...] = (0, 0, 0, 0), before: str = "", unroll: int = 30) -> set[tuple[object, ...]]:
    """The final values of ``out``."""
    limits, test = Limits(unroll=unroll), kernel(body, inp, before)
    result = check(test, model_named("ptx-8.5"), engine="both", limits=limits, all_state=True)
    assert result.status == "complete" and result.outcomes
    return {tuple(outcome.memory[f"out[{i}]"] for i in range(4)) for outcome in result.outcomes}


def only(*values: int) -> set[tuple[object, ...]]:
    """One final state: these values first, and then 9."""
    return {(*values, *(9,) * (4 - len(values)))}


def error_of(body: str, before: str = "") -> PtxmmError:
    with pytest.raises(PtxmmError) as caught:
        kernel(body, before=before)
    return caught.value


@pytest.mark.parametrize(
    ("computed", "place"),
    [
        ("mad.lo.u32 %r5, %r3, 12, %r4;", "[s+24]"),
        ("mad.lo.s32 %r5, %r3, -4, %r4; add.u32 %r5, %r5, 12;", "[s+4]"),
        ("mul.lo.u32 %r5, %r3, 4; add.u32 %r5, %r5, %r4;", "[s+8]"),
    ],
)
def test_an_address_of_shared_memory_is_computed(computed: str, place: str) -> None:
    body = f"mov.u32 %r3, 2; mov.u32 %r4, s; {computed} st.shared.u32 [%r5], 1;"
    assert left(body, before=".shared .align 4 .b8 s[64];") == [f"st.shared.u32 {place}, 1"]


@pytest.mark.parametrize(
    ("decides", "stored"),
    [
        ("setp.eq.u32 %p2, 1, 1; or.pred %p1, %p1, %p2; @%p1 bra E;", False),  # whatever is read
        ("setp.eq.u32 %p2, 1, 2; or.pred %p1, %p1, %p2; @%p1 bra E;", True),
        ("setp.eq.u32 %p2, 1, 2; and.pred %p1, %p2, %p1; @!%p1 bra E;", False),
        ("and.b32 %r1, %r1, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra E;", False),
        ("and.b32 %r1, %r1, 4; setp.eq.u32 %p1, %r1, 0; @%p1 bra E;", True),
    ],
)
def test_a_branch_that_one_operand_decides(decides: str, stored: bool) -> None:
    body = f"ld.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 7; {decides} st.u32 [%rd2], 1; E: st.u32 [%rd1], 1;"
    assert any(row.startswith("st.u32 [out]") for row in left(body)) == stored


def test_an_address_of_global_memory_is_computed() -> None:
    assert left("mov.u32 %r3, 2; mad.wide.u32 %rd3, %r3, 4, %rd2; st.u32 [%rd3], 1;") == ["st.u32 [out+8], 1"]


CARRIES = """
  ld.u32 %r1, [%rd1];
  ld.u32 %r2, [%rd1+4];
  {}
  st.u32 [%rd2], %r3;
  st.u32 [%rd2+4], %r4;
"""


@pytest.mark.parametrize(
    ("operation", "inp", "out"),
    [
        ("add.cc.u32 %r3, %r1, 1; addc.u32 %r4, %r2, 0;", (0xFFFFFFFF, 1), (0, 2)),
        ("add.cc.u32 %r3, %r1, 1; addc.u32 %r4, %r2, 0;", (7, 1), (8, 1)),
        ("sub.cc.u32 %r3, %r1, 1; subc.u32 %r4, %r2, 0;", (0, 5), (0xFFFFFFFF, 4)),
        ("mad.lo.cc.u32 %r3, %r1, 2, 0; madc.hi.u32 %r4, %r1, 2, %r2;", (0x80000000, 4), (0, 5)),
    ],
)
def test_the_carry_of_what_memory_holds(operation: str, inp: tuple[int, int], out: tuple[int, int]) -> None:
    assert ends(CARRIES.format(operation), (*inp, 0, 0)) == only(*out)


# -- joins, guards, branches ---------------------------------------------------------------------------------------

DIAMOND = """
  ld.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra ELSE;
  mov.u32 %r2, {};
  bra JOIN;
ELSE:
  mov.u32 %r2, {};
JOIN:
  st.u32 [%rd2], %r2;
"""


def test_what_both_sides_agree_on_is_known() -> None:
    assert left(DIAMOND.format(5, 5)) == ["ld.u32 r0, [inp]", "st.u32 [out], 5"]


@pytest.mark.parametrize(("value", "end"), [(0, 6), (1, 5)])
def test_what_they_do_not_agree_on_is_carried(value: int, end: int) -> None:
    body = DIAMOND.format(5, 6) + "st.u32 [%rd1], 1;"
    assert sum(row.startswith(("mov", "@")) and " mov" in " " + row for row in left(body)) == 2
    assert ends(body, (value, 0, 0, 0)) == only(end)


GUARDED = """
  ld.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 3;
  mov.u32 %r2, 7;
  @%p1 mov.u32 %r2, 8;
  st.u32 [%rd2], %r2;
  @!%p1 mov.u32 %r2, 7;
  @%p1 add.u32 %r2, %r2, 1;
  st.u32 [%rd2+4], %r2;
"""


@pytest.mark.parametrize(("value", "first", "second"), [(3, 8, 9), (4, 7, 7)])
def test_a_guarded_write_may_leave_what_there_was(value: int, first: int, second: int) -> None:
    assert ends(GUARDED, (value, 0, 0, 0)) == only(first, second)


def test_a_guarded_write_of_what_is_there() -> None:
    body = GUARDED.replace("mov.u32 %r2, 8", "mov.u32 %r2, 7").partition("  @!%p1")[0]
    assert left(body) == ["ld.u32 r0, [inp]", "st.u32 [out], 7"]


def test_dead_branches_go() -> None:
    body = """
  mov.u32 %r1, %tid.x;
  setp.gt.u32 %p1, %r1, 0;
  @%p1 bra OTHER;
  st.u32 [%rd2], 1;
  @!%p1 bra END;
OTHER:
  st.u32 [%rd2], 2;
  @%p1 exit;
  st.u32 [%rd2+4], 3;
END:
"""
    assert left(body) == ["st.u32 [out], 1"]
    (first, second) = kernel(body, launch="block = 2").threads
    assert len(first.body) == 1 and len(second.body) == 1 and first.body != second.body


@pytest.mark.parametrize(
    ("first", "second", "stores"),
    [
        ("eq.u32 %p1, %r1, 5; @!%p1 bra END;", "eq.u32 %p2, %r1, 5", True),
        ("eq.u32 %p1, %r1, 5; @!%p1 bra END;", "ne.u32 %p2, %r1, 5", False),
        ("eq.u32 %p1, %r1, 5; @!%p1 bra END;", "lt.u32 %p2, %r1, 5", False),
        ("ne.u32 %p1, %r1, 5; @%p1 bra END;", "eq.u32 %p2, %r1, 5", True),
    ],
)
def test_a_branch_tells_what_a_register_is(first: str, second: str, stores: bool) -> None:
    body = f"  ld.u32 %r1, [%rd1]; setp.{first} setp.{second}; @!%p2 bra END; st.u32 [%rd2], 1;\nEND: st.u32 [%rd1], 1;"
    rows = left(body)
    assert sum("setp" in row for row in rows) == int(stores)
    assert any(row.endswith("st.u32 [out], 1") for row in rows) == stores
    assert ends(body, (5, 0, 0, 0)) == only(1 if stores else 9)
    assert ends(body, (4, 0, 0, 0)) == only(9)


@pytest.mark.parametrize(
    "between",
    ["ld.u32 %r1, [%rd1+4];", "@%p3 mov.u32 %r1, 0;", "add.u32 %r1, %r1, %r4;", "setp.eq.u32 %p1, %r4, 1;"],
)
def test_what_a_branch_tells_ends_with_a_write(between: str) -> None:
    """Between the comparison and the branch, and after the branch."""
    start = "  ld.u32 %r4, [%rd1+8]; setp.eq.u32 %p3, %r4, 1; ld.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 5;"
    end = "setp.eq.u32 %p2, %r1, 5; selp.u32 %r5, 1, 0, %p2; st.u32 [%rd2], %r5;\nEND:\n"
    after = f"{start} @!%p1 bra END; {between} {end}"
    before = f"{start} {between} @!%p1 bra END; {end}"
    same = int(between.startswith("setp"))
    assert ends(after, (5, 6, 1, 0)) == only(same)
    assert ends(before, (5, 6, 1, 0)) == only(same)
    assert ends(before, (4, 5, 1, 0)) == (only(0) if same else only(9))


def test_exit_is_the_end() -> None:
    body = "  ld.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; st.u32 [%rd2], 1; @%p1 exit; st.u32 [%rd2], 2;"
    assert ends(body) == only(1)
    assert ends(body, (1, 0, 0, 0)) == only(2)


# -- loops ---------------------------------------------------------------------------------------------------------


def test_a_loop_of_known_rounds_is_unrolled() -> None:
    body = """
  mov.u32 %r1, 0;
  mov.u64 %rd3, %rd2;
LOOP:
  st.u32 [%rd3], %r1;
  add.s64 %rd3, %rd3, 4;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bra LOOP;
"""
    assert left(body) == [f"st.u32 [out{f'+{4 * i}' if i else ''}], {i}" for i in range(3)]


def test_nested_loops_are_unrolled() -> None:
    body = """
  mov.u32 %r1, 0;
  mov.u32 %r3, 0;
OUTER:
  mov.u32 %r2, 0;
INNER:
  mad.lo.u32 %r3, %r1, %r2, %r3;
  add.u32 %r2, %r2, 1;
  setp.ne.u32 %p1, %r2, 4;
  @%p1 bra INNER;
  add.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 5;
  @%p1 bra OUTER;
  st.u32 [%rd2], %r3;
"""
    assert left(body) == [f"st.u32 [out], {sum(i * j for i in range(5) for j in range(4))}"]


def test_a_polling_loop_stays() -> None:
    body = "LOOP: ld.acquire.gpu.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP; st.u32 [%rd2], %r1;"
    rows = left(body)
    assert [row.split()[0] for row in rows][-2:] == ["@p0", "st.u32"]
    assert sum("ld.acquire" in row for row in rows) == 1


def test_a_counter_that_nobody_needs_goes() -> None:
    """The counter of a polling loop that decides how long it sleeps (libcu++): what is left spins."""
    body = """
  mov.u32 %r2, 0;
LOOP:
  ld.acquire.gpu.u32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  setp.lt.u32 %p2, %r2, 16;
  @%p2 bra SHORT;
  nanosleep.u32 %r2;
  bra NEXT;
SHORT:
  add.u32 %r2, %r2, 1;
NEXT:
  bra LOOP;
DONE:
  st.u32 [%rd2], 1;
"""
    rows = left(body)
    assert sum("ld.acquire" in row for row in rows) == 1
    assert not any("add" in row for row in rows)
    assert ends(body, (1, 0, 0, 0), unroll=2) == only(1)


OPEN = """
  mov.u32 %r1, 0;
LOOP:
  setp.ne.u32 %p1, %r1, {at};
  @%p1 bra NEXT;
  ld.relaxed.gpu.u32 %r2, [%rd1];
  setp.eq.u32 %p2, %r2, 1;
  @%p2 bra DONE;
NEXT:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p3, %r1, {rounds};
  @%p3 bra LOOP;
DONE:
  add.u32 %r3, %r1, 100;
  st.u32 [%rd2], %r3;
"""


@pytest.mark.parametrize("at", [0, MAX_OPEN - 2, MAX_OPEN - 1, MAX_OPEN, MAX_OPEN + 1, 15, 19])
def test_a_loop_that_memory_may_end_late(at: int) -> None:
    """Memory decides first in a round after those that a loop of this kind has in the result."""
    body = OPEN.format(at=at, rounds=20)
    assert ends(body, (1, 0, 0, 0)) == only(100 + at)
    assert ends(body) == only(120)


def test_a_loop_of_many_rounds_that_memory_may_end() -> None:
    body = OPEN.format(at=3, rounds=26).replace("setp.ne.u32 %p1, %r1, 3", "setp.eq.u32 %p1, %r1, 77")
    assert sum("ld.relaxed" in row for row in left(body)) <= MAX_OPEN + 1
    assert ends(body, (1, 0, 0, 0)) == only(100)
    assert ends(body) == only(126)


@pytest.mark.parametrize(("inp", "end"), [((0, 0), 0), ((1, 0), 1), ((5, 0), 1)])
def test_an_irreducible_loop(inp: tuple[int, int], end: int) -> None:
    body = """
  mov.u32 %r0, 0;
  ld.u32 %r1, [%rd1];
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra B;
A:
  add.u32 %r0, %r0, 1;
B:
  ld.u32 %r1, [%rd1+4];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra A;
  st.u32 [%rd2], %r0;
"""
    assert ends(body, (*inp, 0, 0)) == only(end)


def test_a_state_machine_of_indexed_branches() -> None:
    body = """
  mov.u32 %r0, {};
  mov.u32 %r1, 0;
LOOP:
T: .branchtargets ADD, DOUBLE, END;
  brx.idx %r0, T;
ADD:
  add.u32 %r1, %r1, 3;
  mov.u32 %r0, 1;
  bra LOOP;
DOUBLE:
  shl.b32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 20;
  selp.u32 %r0, 0, 2, %p1;
  bra LOOP;
END:
  st.u32 [%rd2], %r1;
"""
    # 3, 6, 9, 18, 21, 42
    assert left(body.format(0)) == ["st.u32 [out], 42"]
    unknown = body.replace("mov.u32 %r0, {}", "ld.u32 %r0, [%rd1]")
    assert ends(unknown) == only(42)
    assert ends(unknown, (2, 0, 0, 0)) == only(0)


def test_loops_of_the_flow() -> None:
    body = """
A:
  ld.u32 %r1, [%rd1];
B:
  ld.u32 %r2, [%rd1+4];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra B;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra A;
  st.u32 [%rd2], %r1;
"""
    (thread,) = kernel(body).threads
    flow = analyse(thread.body, ())
    depths = [len(flow.loops[pc]) for pc in range(len(thread.body))]
    assert depths == [1, 2, 2, 2, 1, 1, 0]
    assert flow.loops[1] == (0, 1)
    assert flow.live[len(thread.body)] == frozenset()


# -- much ----------------------------------------------------------------------------------------------------------


def test_nested_loops_of_few_rounds_are_left_in_the_result() -> None:
    """12 loops of 3 rounds in each other: more instructions than a thread may have, if all are unrolled."""
    heads = [f"mov.u32 %c{i}, 0; L{i}:" for i in range(12)]
    ends_ = [f"add.u32 %c{i}, %c{i}, 1; setp.lt.u32 %p1, %c{i}, 3; @%p1 bra L{i};" for i in reversed(range(12))]
    inner = "ld.relaxed.gpu.u32 %r1, [%rd1]; st.relaxed.gpu.u32 [%rd2], %r1;"
    (thread,) = kernel("\n".join([".reg .b32 %c<12>;", *heads, inner, *ends_])).threads
    assert len(thread.body) < 20_000


def test_long_loops_in_a_row_are_read_at_once() -> None:
    loops = "\n".join(
        f"mov.u32 %r1, 0; L{i}: st.u32 [%rd2], %r1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4000; @%p1 bra L{i};"
        for i in range(12)
    )
    (thread,) = kernel(loops).threads
    assert len(thread.body) < 20_000


# -- calls ---------------------------------------------------------------------------------------------------------

SWAP = """
.func (.param .align 8 .b8 result[8]) swap(.param .align 8 .b8 pair[8])
{
  .reg .b32 %r<3>;
  ld.param.v2.b32 {%r1, %r2}, [pair];
  st.param.b32 [result], %r2;
  st.param.b32 [result+4], %r1;
  ret;
}
"""


def test_a_structure_by_value() -> None:
    body = """
  ld.u32 %r1, [%rd1];
  { .param .align 8 .b8 x[8]; .param .align 8 .b8 y[8];
    st.param.b32 [x], %r1; st.param.b32 [x+4], 6;
    call.uni (y), swap, (x);
    ld.param.v2.b32 {%r3, %r4}, [y]; }
  st.u32 [%rd2], %r3;
  st.u32 [%rd2+4], %r4;
"""
    assert ends(body, (5, 0, 0, 0), before=SWAP) == only(6, 5)


CLAMP = """
.func (.reg .u32 r) clamp(.reg .u32 a, .reg .u32 b)
{
  .reg .pred p;
  setp.gt.u32 p, a, 100;
  @p mov.u32 r, 122;
  @p ret;
  add.u32 r, a, b;
}
"""


def test_parameters_in_registers_and_two_calls() -> None:
    body = """
  ld.u32 %r1, [%rd1];
  call (%r2), clamp, (%r1, 5);
  call (%r3), clamp, (%r2, %r1);
  st.u32 [%rd2], %r2;
  st.u32 [%rd2+4], %r3;
"""
    assert ends(body, (3, 0, 0, 0), before=CLAMP) == only(8, 11)
    assert ends(body, (99, 0, 0, 0), before=CLAMP) == only(104, 122)
    assert ends(body, (101, 0, 0, 0), before=CLAMP) == only(122, 122)


def test_a_guarded_call() -> None:
    body = """
  ld.u32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, 1;
  @%p1 call (%r2), clamp, (%r1, 5);
  st.u32 [%rd2], %r2;
"""
    assert ends(body, before=CLAMP) == only(1)
    assert ends(body, (2, 0, 0, 0), before=CLAMP) == only(7)


RECURSION = """
.func (.param .b32 r) down(.param .b32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [n];
  setp.lt.u32 %p1, %r1, BOUND;
  @%p1 bra END;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), down, (a); ld.param.b32 %r1, [b]; }
END:
  st.param.b32 [r], %r1;
  ret;
}
"""
DOWN = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], 3; call.uni (b), down, (a); ld.param.b32 %r1, [b]; }"


def test_recursion_is_refused_where_it_happens() -> None:
    assert ends(f"{DOWN} st.u32 [%rd2], %r1;", before=RECURSION.replace("BOUND", "8")) == only(3)
    error = error_of(f"{DOWN} st.u32 [%rd2], %r1;", RECURSION.replace("BOUND", "2"))
    assert (error.kind, error.message) == ("unsupported", "`down` calls itself, which is not supported")
    assert error.line is not None and error.line > 1


def test_a_shared_variable_of_a_function_is_one() -> None:
    before = """
.func count(.reg .u64 to)
{
  .shared .align 4 .u32 times;
  .reg .b32 %r<3>;
  atom.shared.add.u32 %r1, [times], 1;
  st.u32 [to], %r1;
}
"""
    body = """
  add.s64 %rd3, %rd2, 4;
  call count, (%rd2);
  call count, (%rd3);
"""
    test = kernel(body, before=before)
    assert [item.space for item in test.objects.values()].count("shared") == 1
    result = check(test, model_named("ptx-8.5"), all_state=True)
    seen = {tuple(str(outcome.memory[f"out[{i}]"]) for i in range(2)) for outcome in result.outcomes}
    assert all(first != second for first, second in seen)


# -- addresses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("computed", "stored"),
    [
        ("add.s64 %rd3, %rd2, 8; st.u32 [%rd3+-4], 1;", "[out+4], 1"),
        ("or.b64 %rd3, %rd2, 4; st.u32 [%rd3], 1;", "[out+4], 1"),
        ("add.s64 %rd3, %rd2, 6; and.b64 %rd3, %rd3, 0xfffffffffffffffc; st.u32 [%rd3], 1;", "[out+4], 1"),
        ("add.s64 %rd3, %rd2, 6; and.b64 %rd3, %rd3, -4; st.u32 [%rd3], 1;", "[out+4], 1"),
        ("sub.s64 %rd3, %rd2, %rd2; cvt.u32.u64 %r1, %rd3; st.u32 [%rd2], %r1;", "[out], 0"),
        ("and.b64 %rd3, %rd2, 15; cvt.u32.u64 %r1, %rd3; st.u32 [%rd2], %r1;", "[out], 0"),
        ("setp.eq.s64 %p1, %rd2, 0; selp.u32 %r1, 1, 2, %p1; st.u32 [%rd2], %r1;", "[out], 2"),
        ("setp.ne.s64 %p1, %rd2, %rd2; selp.u32 %r1, 1, 2, %p1; st.u32 [%rd2], %r1;", "[out], 2"),
        ("setp.eq.u32 %p1, 1, 1; selp.b64 %rd3, %rd2, %rd1, %p1; st.u32 [%rd3], 1;", "[out], 1"),
        ("cvta.to.global.u64 %rd3, %rd2; cvta.global.u64 %rd4, %rd3; st.u32 [%rd4], 1;", "[out], 1"),
        ("isspacep.global %p1, %rd2; selp.u32 %r1, 1, 2, %p1; st.u32 [%rd2], %r1;", "[out], 1"),
        ("isspacep.shared %p1, %rd2; selp.u32 %r1, 1, 2, %p1; st.u32 [%rd2], %r1;", "[out], 2"),
        ("mul.wide.u32 %rd3, 3, 4; add.s64 %rd3, %rd3, %rd2; st.u32 [%rd3], 1;", "[out+12], 1"),
    ],
)
def test_addresses_that_are_known(computed: str, stored: str) -> None:
    assert left(f"  {computed}\n") == [f"st.u32 {stored}"]


def test_the_window_of_shared_memory() -> None:
    body = """
  mov.u64 %rd3, buffer;
  cvta.shared.u64 %rd4, %rd3;
  cvta.to.shared.u64 %rd5, %rd4;
  cvt.u32.u64 %r1, %rd5;
  add.u32 %r2, %r1, 4;
  st.shared.u32 [%r2], 5;
  ld.u32 %r3, [%rd4+4];
  st.u32 [%rd2], %r3;
"""
    rows = left(body, before=".shared .align 4 .b8 buffer[8];")
    assert rows[0] == "st.shared.u32 [buffer+4], 5"
    assert ends(body, before=".shared .align 4 .b8 buffer[8];") == only(5)


DISPATCH = """
  mov.u64 %rd7, place;
  cvta.shared.u64 %rd7, %rd7;
  isspacep.shared %p3, %rd7;
  @%p3 bra SHARED;
  st.global.u32 [%rd7], 5;
SHARED:
  st.u32 [%rd2], 1;
"""


def test_dispatch_on_the_space_of_an_address() -> None:
    assert left(DISPATCH, before=".shared .align 4 .u32 place;") == ["st.u32 [out], 1"]


@pytest.mark.parametrize(
    "access",
    [
        "st.u32 [%rd2+2], 1", "st.v2.u32 [%rd2+4], {1, 1}", "st.u32 [%rd2+400], 1", "ld.u64 %rd5, [%rd2+4]",
        "atom.add.u32 %r6, [%rd2+1], 1", "st.shared.u32 [%rd2], 1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("guarded", [False, True])
def test_an_access_that_is_not_executed_may_be_wrong(access: str, guarded: bool) -> None:
    start = "  ld.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 1;"
    body = f"{start} @%p1 {access};\n" if guarded else f"{start} @!%p1 bra END; {access};\nEND:\n"
    assert ends(body) == only()
    result = check(kernel(body, (1, 0, 0, 0)), model_named("ptx-8.5"), enumerate_all=False)
    assert result.status == "undefined"


# -- what can't be modelled ----------------------------------------------------------------------------------------

VIDEO = "  ld.u32 %r1, [%rd1]; vadd.u32.u32.u32 %r2, %r1, %r1;"


def test_what_nobody_needs_may_be_beyond_the_model() -> None:
    assert left(f"{VIDEO} st.u32 [%rd2], 1;") == ["ld.u32 r0, [inp]", "st.u32 [out], 1"]


@pytest.mark.parametrize("needs", ["st.u32 [%rd2], %r2;", "setp.gt.u32 %p1, %r2, 0; @%p1 st.u32 [%rd2], 1;"])
def test_what_is_needed_may_not(needs: str) -> None:
    error = error_of(f"{VIDEO} {needs}")
    assert error.kind == "unsupported" and "vadd" in error.message


def test_what_is_not_worked_out_is_kept_and_may_be_stored() -> None:
    wave = "  ld.f32 %f1, [%rd1]; sin.approx.f32 %f2, %f1;"
    assert left(f"{wave} st.f32 [%rd2], %f2;") == ["ld.f32 f0, [inp]", "sin.approx.f32 f1, f0", "st.f32 [out], f1"]
    assert left(f"{wave} st.u32 [%rd2], 1;") == ["ld.f32 f0, [inp]", "st.u32 [out], 1"]


def test_the_skeleton_is_the_same_program() -> None:
    body = DIAMOND.format(5, 6)
    again = parse_one(skeleton(kernel(body)))
    assert [len(t.body) for t in again.threads] == [len(t.body) for t in kernel(body).threads]


def test_descriptors_of_matrices() -> None:
    body = """  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %rd3, %rd4, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;"""
    with pytest.raises(PtxmmError, match="a matrix descriptor that the launch does not decide") as caught:
        kernel(body)
    assert (caught.value.kind, caught.value.column) == ("unsupported", 3)


def test_generic_addresses_of_shared_variables() -> None:
    # As nvcc -G makes them: the 32 bits of the window, zeros before them, and then cvta.
    body = """  mov.u32 %r1, tile;
  cvt.u64.u32 %rd3, %r1;
  mov.b64 %rd4, %rd3;
  cvta.shared.u64 %rd5, %rd4;
  add.s64 %rd5, %rd5, 8;
  st.u32 [%rd5], 5;
  cvt.u32.u64 %r2, %rd4;
  ld.shared.u32 %r3, [%r2+8];
  st.global.u32 [%rd2], %r3;"""
    before = ".shared .align 8 .b8 tile[16];"
    assert left(body, before) == ["st.u32 [tile+8], 5", "ld.shared.u32 r0, [tile+8]", "st.global.u32 [out], r0"]
    assert ends(body, before=before) == {(5, 9, 9, 9)}
    # The 64 bits themselves are no address of the variable: nothing is made of them, and no verdict rests on them.
    body = """  mov.u32 %r1, tile;
  cvt.u64.u32 %rd3, %r1;
  shr.u64 %rd4, %rd3, 32;
  st.global.u32 [%rd2], %rd4;"""
    body = body.replace("st.global.u32 [%rd2], %rd4", "cvt.u32.u64 %r2, %rd4;\n  st.global.u32 [%rd2], %r2")
    found = check(kernel(body, before=before), model_named("ptx-8.5"), all_state=True)
    assert [outcome.memory["out[0]"] for outcome in found.outcomes] == [0] and found.status == "bounded"
