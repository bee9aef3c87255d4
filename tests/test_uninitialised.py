"""Memory without an initial value, as shared memory is: what is never read may as well be 0."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Result
from ptxmm.analysis.uninitialised import settle_uninitialised
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import hidden
from tests.support import model_named, parse_one

HEAD = """// ptxmm: args = ["out"]
// ptxmm: block = {block}
// ptxmm: [objects]
// ptxmm: out = {{ type = "u32", count = 8 }}
// ptxmm: [check]
// ptxmm: condition = "{condition}"
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{{
  .shared .align 16 .b32 s[8];
  .shared .align 16 .b32 t[8];
  .shared .align 8 .b64 bar;
  .reg .pred %p<4>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [a];
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p0, %r0, 0;
"""


def kernel(body: str, condition: str, block: int = 2) -> Test:
    """A kernel with arrays ``s`` and ``t`` and an mbarrier ``bar`` in shared memory; %p0: not the first thread."""
    text = HEAD.format(condition=condition.replace("\\", "\\\\"), block=block) + body + "\n  ret;\n}\n"
    (test,) = parse(text, "k.ptx")
    return test


def zeroed(test: Test) -> set[str]:
    """The objects that are taken to hold 0 at first."""
    left = settle_uninitialised(test, model_named("ptx-8.5"), Limits(), Observed((), ()))
    return {name for name, item in test.objects.items() if item.unknown and not left.objects[name].unknown}


def verdict(test: Test, engine: str = "both") -> Result:
    return check(test, model_named("ptx-8.5"), engine=engine)


SUM = """
  @%p0 bra OTHER;
  {first}
  barrier.sync 0;
  bra END;
OTHER:
  {other}
  ld.shared.u32 %r1, [s];
  ld.shared.u32 %r2, [s+4];
  add.u32 %r3, %r1, %r2;
  setp.gt.u32 %p1, %r3, 3;
  @%p1 st.global.u32 [%rd1], %r3;
END:
"""
WRITES = "st.shared.u32 [s], 3; st.shared.u32 [s+4], 4;"


def test_what_is_written_before_it_is_read_is_0_at_first() -> None:
    test = kernel(SUM.format(first=WRITES, other="barrier.sync 0;"), "forall (out[0] == 7)")
    assert zeroed(test) == {"s"}
    result = verdict(test)
    assert (result.holds, result.status) == (True, "complete")


def test_what_may_be_read_before_it_is_written_stays_unknown() -> None:
    test = kernel(SUM.format(first=WRITES, other="").replace("barrier.sync 0;", ""), "forall (out[0] == 7)")
    assert zeroed(test) == set()
    result = verdict(test, "z3")
    assert result.holds is False


def test_half_of_it_is_not_all_of_it() -> None:
    """The bytes of an object are one case: the second element is never written."""
    test = kernel(SUM.format(first="st.shared.u32 [s], 3;", other="barrier.sync 0;"), "forall (out[0] == 7)")
    assert zeroed(test) == set()
    assert verdict(test, "z3").holds is False


def test_a_read_that_only_a_loop_without_end_makes_counts() -> None:
    """The thread that reads it never ends, so no final state shows what it has read."""
    body = """
  @!%p0 bra END;
LOOP:
  ld.relaxed.cta.shared.u32 %r1, [s];
  ld.relaxed.cta.shared.u32 %r3, [s+4];
  add.u32 %r2, %r1, %r3;
  setp.ne.u32 %p1, %r2, %r3;
  @%p1 st.global.u32 [%rd1], 1;
  bra LOOP;
END:
"""
    assert zeroed(kernel(body, "forall (out[0] == 0)")) == set()


COPY = """
  @%p0 bra END;
  mbarrier.init.shared.b64 [bar], 1;
  {}
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  st.shared.u32 [t], 1;
  ld.shared.u32 %r1, [t];
  add.u32 %r1, %r1, %r1;
  setp.eq.u32 %p1, %r1, 2;
  @%p1 st.global.u32 [%rd1+16], %r1;
END:
"""


def test_a_bulk_copy_of_unknown_memory_is_no_read() -> None:
    """It brings unknown bytes to global memory, but never into a register: only the condition could tell."""
    copied = kernel(COPY.format(""), "forall (out[4] == 2)", block=1)
    assert "t" in zeroed(copied)
    assert any(key.endswith("s") for key in hidden(copied, ())), "nothing sees what is copied"
    result = verdict(copied, "z3")
    assert (result.holds, result.status) == (True, "complete")


def test_a_condition_that_shows_what_was_copied() -> None:
    shown = kernel(COPY.format(""), "forall (out[1] == 0 /\\ out[4] == 2)", block=1)
    assert zeroed(shown) == {"t"}
    assert verdict(shown, "z3").holds is False
    written = kernel(
        COPY.format("st.shared.v4.u32 [s], {0, 0, 0, 0};"), "forall (out[1] == 0 /\\ out[4] == 2)", block=1
    )
    assert zeroed(written) == {"s", "t"}
    assert verdict(written, "z3").holds is True


NAMED = """
  mbarrier.init.shared.b64 [bar], 1;
  st.shared.u32 [t], 1;
  ld.shared.u32 %r1, [t];
  setp.eq.u32 %p1, %r1, 1;
  @%p1 st.shared.u32 [s], 5;
"""


def test_a_condition_that_names_it() -> None:
    """What the condition names is left unknown; written or not."""
    named = kernel(NAMED, "forall (cta 0:s[1] == 0)", block=1)
    assert zeroed(named) == {"t"}
    assert verdict(named, "z3").holds is False
    other = kernel(NAMED, "forall (cta 0:s[0] == 5)", block=1)
    assert verdict(other, "z3").holds is True


def test_too_many_combinations() -> None:
    """12 unknown values are compared with each other: one after the other can be tried, which is not all."""
    loads = "".join(f"ld.shared.u32 %r{i}, [{'s' if i < 8 else 't'}+{4 * (i % 8)}]; " for i in range(1, 13))
    compares = "".join(
        f"setp.eq.u32 %p1, %r{i}, %r{i + 1}; @%p1 st.global.u32 [%rd1+{4 * (i % 8)}], {i}; " for i in range(1, 12)
    )
    test = kernel(loads + compares, "forall (out[7] != 100)", block=1)
    assert zeroed(test) == set()
    result = verdict(test, "z3")
    assert (result.holds, result.status) == (None, "bounded")
    assert any("one at a time" in note.text for note in result.notes)


def test_nothing_to_do_without_unknown_values_in_computations() -> None:
    """Where nothing is computed with them, no search is made."""
    test = kernel("  ld.shared.u32 %r1, [s]; st.global.u32 [%rd1], %r1;", "forall (out[1] == 0)", block=1)
    assert settle_uninitialised(test, model_named("ptx-8.5"), Limits()) is test


def test_a_tensor_copy_does_not_read_where_it_writes() -> None:
    """So the bytes that nobody looks at are not told apart, of which there may be no more than 128."""
    text = """PTX t
{
  .global .align 64 .b8 m[128] = tensormap(g, u32, 64, 64);
  .global .align 16 .u32 g[64] = {1};
  .shared .align 128 .u32 s[64] @ cta 0;
  .shared .b64 b @ cta 0 = mbarrier(1);
}
P0 @ cta 0 {
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 256;
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [m, {0}], [b];
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;
  ld.shared.u32 r1, [s];
}
filter (P0:p == 1)
forall (P0:r1 == 1)
"""
    result = check(parse_one(text), model_named("ptx-8.5"), engine="both")
    assert (result.holds, result.status) == (True, "complete")


MANY = """PTX t
{{
  .global .u32 x = 2;
  .shared .u32 s[64] @ cta 0;
}}
P0 @ cta 0 {{
  ld.u32 i, [x];
  mov.u32 a, s;
  add.u32 a, a, i;
  add.u32 a, a, i;
  {0}
  ld.shared.u32 v, [a];
  add.u32 w, v, 1;
}}
forall (P0:w == 6)
"""


def test_more_bytes_than_can_be_told_apart() -> None:
    """It is enough to know that none of them is read. Else there is one error."""
    written = parse_one(MANY.format("st.shared.u32 [a], 5;"))
    assert verdict(written, "z3").holds is True
    read = parse_one(MANY.format("@q st.shared.u32 [a], 5;").replace("ld.u32 i", "setp.eq.u32 q, 1, 2; ld.u32 i"))
    with pytest.raises(PtxmmError, match="256 bytes have no initial value \\(s\\); at most 128 are supported"):
        verdict(read, "z3")
