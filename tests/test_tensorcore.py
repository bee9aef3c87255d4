"""tcgen05 and tensor memory: what is read, what is printed, what is refused (9.7.16 of PTX ISA 9.0)."""

from __future__ import annotations

import pytest

import ptxmm.formats
from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.formats import writer
from ptxmm.program.test import Test

COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one"


def program(
    body: str,
    declarations: str = "",
    place: str = "cta 0, cluster 0",
    isa: str = "8.6",
    condition: str = "exists (P0:q == 1)",
) -> Test:
    text = f"""PTX t
ISA={isa}
{{
  .tmem .b32 t[4] @ cta 0, cluster 0 = {{0, 0, 0, 0}};
  .shared .align 16 .b32 s[4] @ cta 0, cluster 0 = {{1, 2, 3, 4}};
  .shared .b64 b @ cta 0, cluster 0 = mbarrier(1);
  .reg .b64 P0:d = s;
  {declarations}
}}
P0 @ {place} {{
  setp.eq.u32 q, 0, 0;
  {body}
}}
P1 @ cta 0, cluster 0 {{
  mov.u32 r9, 0;
}}
{condition}
"""
    (test,) = ptxmm.formats.parse(text, "t.litmus")
    return test


def refused(body: str, declarations: str = "", place: str = "cta 0, cluster 0", isa: str = "8.6") -> PtxmmError:
    with pytest.raises(PtxmmError) as caught:
        check(program(body, declarations, place, isa), load("ptx-8.5"))
    assert caught.value.line is not None
    return caught.value


@pytest.mark.parametrize(
    "instruction",
    [
        "tcgen05.fence::before_thread_sync",
        "tcgen05.fence::after_thread_sync",
        "tcgen05.wait::ld.sync.aligned",
        "tcgen05.wait::st.sync.aligned",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [t]",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {r1, r2}, [t+2]",
        "tcgen05.st.sync.aligned.32x32b.x4.b32 [t], {1, 2, 3, 4}",
        "tcgen05.cp.cta_group::1.128x128b [t], d",
        "tcgen05.mma.cta_group::1.kind::tf32 [t], d, d, 0, q",
        "tcgen05.mma.cta_group::1.kind::f16 [t+3], [t+1], d, 0, !q",
        f"{COMMIT}.shared::cluster.b64 [b]",
        f"{COMMIT}.b64 [b]",
    ],
)
def test_written_and_read_again(instruction: str) -> None:
    test = program(instruction + ";")
    text = writer.write(test)
    assert instruction in text
    (again,) = ptxmm.formats.parse(text, "t.litmus")
    assert type(again.threads[0].body[1]) is type(test.threads[0].body[1])


def test_version() -> None:
    error = refused("tcgen05.wait::ld.sync.aligned;", isa="8.5")
    assert error.hint == "--isa 8.6" and error.kind == "isa"


@pytest.mark.parametrize(
    "instruction",
    [
        "alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32",
        "dealloc.cta_group::1.sync.aligned.b32 0, 32",
        "relinquish_alloc_permit.cta_group::1.sync.aligned",
        "shift.cta_group::1.down [t]",
    ],
)
def test_what_whole_launches_alone_know(instruction: str) -> None:
    error = refused(f"tcgen05.{instruction};")
    name = instruction.partition(".")[0]
    assert error.message == f"`tcgen05.{name}` is not supported yet" and error.kind == "unsupported"
    assert error.hint is not None and "ptxmm check --whole" in error.hint


@pytest.mark.parametrize(
    ("body", "message", "kind"),
    [
        (
            "mov.u32 r2, 0;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [r2];",
            "an address of tensor memory in a register",
            "unsupported",
        ),
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [s];", "s is in .shared", "type"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {r1, r2}, [t+3];", "outside t", "type"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {r1}, [t];", "`tcgen05.ld.x2`", "isa"),
        ("tcgen05.mma.cta_group::1.kind::f16 [t], d, d, 0, q, 1;", "with more operands", "unsupported"),
        ("tcgen05.mma.cta_group::1.kind::f16 [t], d, d, 0, {0, 0, 0, 0}, q;", "with more operands", "unsupported"),
        ("tcgen05.mma.cta_group::1.kind::i8 [t], d, d, 0, q, 1;", "`.kind::i8` takes no scale of D", "isa"),
        ("tcgen05.mma.cta_group::1.kind::f16 [t], d, d, 0, q, 16;", "the scale of D is 0 to 15", "isa"),
        (f"{COMMIT}.multicast::cluster.b64 [b], 3;", "`.multicast::cluster` is not supported yet", "unsupported"),
        ("tcgen05.alloc.cta_group::2.sync.aligned.b32 [s], 32;", "`.cta_group::2` is not supported yet", "unsupported"),
        ("ld.u32 r1, [t];", "t is tensor memory", "type"),
        ("mov.u64 r1, t;", "t is tensor memory", "type"),
        ("tcgen05.cp.cta_group::1.64x128b [t], d;", "`.64x128b` is not supported yet", "unsupported"),
    ],
)
def test_refused(body: str, message: str, kind: str) -> None:
    error = refused(body)
    assert message in error.message and error.kind == kind


def test_tensor_memory_of_another_cta() -> None:
    error = refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [t];", place="cta 1, cluster 0")
    assert error.message == "t is tensor memory of another CTA"


def test_no_aliases_no_addresses_no_other_types() -> None:
    assert "which has no aliases" in refused("mov.u32 r1, 0;", "y @ generic aliases t;").message
    assert refused("mov.u64 r1, r2;", ".reg .b64 P0:r2 = t;").kind == "unsupported"
    error = refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [u];", ".tmem .b64 u[2] @ cta 0, cluster 0;")
    assert "columns of tensor memory have 32 bits" in error.message


def test_older_models_refuse() -> None:
    test = program("tcgen05.wait::ld.sync.aligned;")
    with pytest.raises(PtxmmError) as caught:
        check(test, load("ptx-7.5"))
    assert caught.value.kind == "unsupported"


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_parts_of_a_copy(engine: str) -> None:
    """Each column gets its own bytes."""
    test = program(
        f"""tcgen05.cp.cta_group::1.128x128b [t], d;
  {COMMIT}.b64 [b];
  mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [b], 0;
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x4.b32 {{r1, r2, r3, r4}}, [t];""",
        condition="exists (P0:p == 1 /\\ ~(P0:r1 == 1 /\\ P0:r2 == 2 /\\ P0:r3 == 3 /\\ P0:r4 == 4))",
    )
    found = check(test, load("ptx-8.5"), engine=engine)
    assert (found.status, found.observation) == ("complete", "never")
