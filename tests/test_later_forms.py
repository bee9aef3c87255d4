"""Forms of PTX ISA 8.6 and later that are not supported are said to be of their version, with any ``--isa``."""

from __future__ import annotations

import pytest

from ptxmm import formats
from ptxmm.errors import PtxmmError
from ptxmm.ptx.isa import resolve
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.syntax import Instruction

FORMS = [
    ("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s], [m]", "8.6"),
    ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b128 [s], v, [m]", "9.2"),
    ("ld.volatile.local.u32 r, [x]", "9.1"),
    ("st.volatile.local.u32 [x], r", "9.1"),
    ("multimem.cp.async.bulk.global.shared::cta.bulk_group [x], [s], 16", "9.1"),
    ("multimem.st.async.release.gpu.global.u32 [x], r", "9.3"),
    ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [s], [x], 16, [m]", "9.2"),
    ("cp.async.bulk.relaxed.gpu.shared::cta.global.mbarrier::complete_tx::bytes [s], [x], 16, [m]", "9.3"),
    ("cp.reduce.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.add.u32 [x], [s], 16", "9.3"),
    ("mbarrier.init.layout::v1.shared.b64 [m], 4", "9.3"),
    ("mbarrier.arrive.phase_type::conditional.shared.b64 r, [m]", "9.3"),
    ("mbarrier.check_layout.shared.b64 p, [m]", "9.3"),
    ("mbarrier.arrive.multicast::cluster::32b.shared::cluster.b64 _, [m], r", "9.4"),
    ("fabric.try_get.async [s], [x]", "9.3"),
    ("fabric.try_atom.add.u32 r, [x]", "9.4"),
    ("fence.proxy.generic::fabric.alias.acquire.sys", "9.3"),
    ("fence.proxy.alias.acquire.sys", "9.4"),
    ("fence.proxy.alias.release.sys", "9.4"),
    ("ld.mmio.acquire.sys.global.u32 r, [x]", "9.3"),
    ("ld.proxy::readonly.global.u32 r, [x]", "9.4"),
    ("fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster", "9.4"),
    ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.override::global_address [s], [x], 16, [m]", "9.4"),
    ("applypriority.async.bulk.global.L2::evict_normal [x], 128", "9.4"),
    ("tcgen05.commit.cta_group::1.sync_restrict::shared::read::mma::a.b64 [m]", "9.4"),
]


@pytest.mark.parametrize(("text", "version"), FORMS)
def test_the_version_is_said(text: str, version: str) -> None:
    (statement,) = parse_statements(text)
    assert isinstance(statement, Instruction)
    for isa in ((8, 5), (9, 4)):
        with pytest.raises(PtxmmError) as caught:
            resolve(statement, dialect=False, variables={"x", "s", "m"}, labels={}, isa=isa)
        error = caught.value
        if isa == (8, 5):
            assert f"is PTX ISA {version}, and the version here is 8.5" in error.message, error.message
            assert error.hint == f"it is not supported with --isa {version} either"
        else:
            assert "not supported yet" in error.message and error.kind == "unsupported", error.message


def test_what_is_supported_stays_so() -> None:
    """Each differs from a later form by one word."""
    for text in ("ld.mmio.relaxed.sys.global.u32 r, [x]", "fence.proxy.alias", "ld.volatile.global.u32 r, [x]",
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [s], v, [m]"):  # fmt: skip
        (statement,) = parse_statements(text)
        assert isinstance(statement, Instruction)
        resolve(statement, dialect=False, variables={"x", "s", "m"}, labels={})


IMMEDIATES = [
    ("st.global.u32 [x], 4294967295", True), ("st.global.u32 [x], 4294967296", False),
    ("st.global.u32 [x], -2147483648", True), ("st.global.u32 [x], -2147483649", False),
    ("st.global.s32 [x], 4294967295", True), ("st.global.u8 [x], 255", True), ("st.global.u8 [x], 256", False),
    ("st.global.s8 [x], -128", True), ("st.global.s8 [x], -129", False), ("mov.b16 r, 0xFFFF", True),
    ("mov.b16 r, 0x10000", False), ("add.u32 r, r, 0x1FFFFFFFF", False), ("setp.eq.u16 p, r, 65536", False),
    ("atom.relaxed.gpu.global.add.u32 r, [x], 4294967296", False), ("mov.u64 r, 18446744073709551615", True),
    ("atom.relaxed.gpu.global.cas.b16 r, [x], 0, 65536", False), ("bar.warp.sync 0xffffffff", True),
    ("bar.warp.sync 0x1ffffffff", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fits"), IMMEDIATES)
def test_immediates(text: str, fits: bool) -> None:
    """ptxas takes the last bits of each without a word (release 13.0); so do kernels."""
    (statement,) = parse_statements(text)
    assert isinstance(statement, Instruction)
    resolve(statement, dialect=False, variables={"x"}, labels={}, cuts=[])
    if fits:
        resolve(statement, dialect=False, variables={"x"}, labels={})
        return
    with pytest.raises(PtxmmError, match=r"does not fit in \d+ bits"):
        resolve(statement, dialect=False, variables={"x"}, labels={})


@pytest.mark.parametrize(
    ("written", "mend"),
    [
        ("__threadfence_block();", "membar.cta"), ("__threadfence_system();", "membar.sys"),
        ("atomicCAS_system(&x, 0, 1);", "atom.relaxed.sys.global.cas.b32"), ("atomicExch(x, 1);", "exch"),
        ("int r = atomicAdd(&x, 1);", "mov.u32"), ("while (x == 0);", "bra"), ("for (int i = 0; i < 2; i++)", "bra"),
        ("x.store(1, std::memory_order_release);", "st.release"), ("x.fetch_add(1);", "atom"),
        ("x->load(cuda::std::memory_order_acquire);", "ld.acquire"), ("x += 1;", "st.global"), ("x++;", "st.global"),
        ("foo(1);", "can't be said"), ("cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst);", "fence.sc"),
    ],
)  # fmt: skip
def test_cuda_in_a_thread(written: str, mend: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        formats.parse(f"PTX t\n{{ .global .u32 x = 0; }}\nP0 {{\n  st.global.u32 [x], 1;\n  {written}\n}}\n")
    assert caught.value.line == 5 and caught.value.column == 3
    assert "is CUDA C++: a thread is written in PTX" in caught.value.message
    assert mend in (caught.value.hint or "")
