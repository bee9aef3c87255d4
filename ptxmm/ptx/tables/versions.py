"""First versions of qualifiers that are later than their instruction's, and instructions known without a row.

From the PTX ISA notes and target notes of the sections of 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.tables.form import COMPLETE_TX, EVICT, HINT, PREFETCH, SCOPES, SM90, V6, Version, words
from ptxmm.ptx.tables.matrices import LATER_MATRICES
from ptxmm.ptx.tables.memory import MULTIMEM_LATER
from ptxmm.ptx.tables.tensorcore import LATER_TENSORS, SM100
from ptxmm.ptx.tables.wmma import SINCE as WMMA_SINCE

_ATOMICS = ("atom", "red")
_MBARRIER = words("mbarrier.arrive mbarrier.arrive_drop mbarrier.test_wait mbarrier.try_wait")
_V86 = Version((8, 6), 90)
_V87 = Version((8, 7), 90)

# (opcodes, or none for all; qualifiers, all of which must be there; version).
SINCE: tuple[tuple[tuple[str, ...], tuple[str, ...], Version], ...] = (
    (("ld", "st"), ("volatile",), Version((1, 1))),
    *(((), (order,), V6) for order in ("weak", "relaxed", "acquire", "release", "acq_rel")),
    ((), ("cluster",), Version((7, 8), 90)),
    ((), ("shared::cta",), Version((7, 8), 30)),
    ((), ("shared::cluster",), Version((7, 8), 90)),
    (("ld", "st"), ("param::entry",), Version((8, 3))),
    (("isspacep", "cvta"), ("param::entry",), Version((8, 3), 70)),
    (("isspacep", "cvta"), ("param",), Version((7, 7), 70)),
    (("isspacep", "cvta"), ("const",), Version((3, 1), 20)),
    ((), ("param::func",), Version((8, 3))),
    ((), ("mmio",), Version((8, 2), 70)),
    *(((), (hint,), Version((7, 4), 70)) for hint in EVICT),
    *(((), (hint,), Version((7, 4), 75)) for hint in PREFETCH),
    ((), ("L2::256B",), Version((7, 4), 80)),
    ((), HINT, Version((7, 4), 80)),
    *((("ld", "st"), (t,), Version((1, 0), 13)) for t in ("f64",)),
    *((("mov", "selp"), (t,), Version((1, 0), 13)) for t in ("f64",)),
    ((), ("b128",), Version((8, 3), 70)),
    (_ATOMICS, ("b128",), Version((8, 3), 90)),
    ((), ("b128", "sys"), Version((8, 4), 70)),
    *((("ld", "st", "ld.nc"), (vec, t), Version((8, 8), 100)) for vec, types in
      (("v8", "b32 u32 s32 f32"), ("v4", "b64 u64 s64 f64")) for t in words(types)),
    *((_ATOMICS, (scope,), Version((5, 0), 60)) for scope in SCOPES),
    *((_ATOMICS, (op, t), Version((3, 1), 32)) for op in ("and", "or", "xor", "min", "max")
      for t in ("b64", "u64", "s64")),
    (("atom",), ("cas", "b16"), Version((6, 3), 70)),
    (_ATOMICS, ("f32",), Version((2, 0), 20)),
    (_ATOMICS, ("f64",), Version((5, 0), 60)),
    (_ATOMICS, ("f16x2",), Version((6, 2), 60)),
    (_ATOMICS, ("f16",), Version((6, 3), 70)),
    (_ATOMICS, ("bf16",), Version((7, 8), 90)),
    (_ATOMICS, ("bf16x2",), Version((7, 8), 90)),
    *((_ATOMICS, (vec,), Version((8, 1), 90)) for vec in ("v2", "v4", "v8")),
    (("multimem.ld_reduce",), ("acc::f32",), Version((8, 2), 90)),
    (("membar",), ("sys",), Version((2, 0), 20)),
    (("bar",), ("arrive",), Version((2, 0), 20)),
    (("bar", "barrier", "bar.red", "barrier.red"), ("cta",), Version((7, 8), 20)),
    *((("fence",), (order,), Version((8, 6), 70)) for order in ("acquire", "release")),
    *((("fence",), (space,), _V86) for space in ("sync_restrict::shared::cta", "sync_restrict::shared::cluster")),
    (("fence.proxy", "membar.proxy"), ("async",), SM90),
    *((("barrier.cluster.arrive", "barrier.cluster.wait"), (order,), SM90) for order in
      ("release", "relaxed", "acquire")),
    *((_MBARRIER, (word,), Version((8, 0), 80)) for word in ("release", "acquire", "cta")),
    *((_MBARRIER, (word,), SM90) for word in ("cluster", "expect_tx")),
    (_MBARRIER, ("shared::cluster",), SM90),
    (_MBARRIER, ("relaxed",), _V86),
    (("mbarrier.test_wait",), ("parity",), Version((7, 1), 80)),
    *((("prefetch",), (word,), Version((7, 4), 80)) for word in ("L2::evict_last", "L2::evict_normal")),
    (("prefetch",), ("tensormap",), SM90),
    (("cp.async.bulk", "cp.async.bulk.tensor"), ("shared::cta", "global", COMPLETE_TX), _V86),
    (("cp.async.bulk",), ("cp_mask",), Version((8, 6), 100)),
    (("wgmma.mma_async", "wgmma.mma_async.sp"), ("s8", "u8"), Version((8, 4), 90)),
    *WMMA_SINCE,
    *((("add", "min", "max"), (pair,), Version((8, 0), 90)) for pair in ("u16x2", "s16x2")),
    *((("add.cc", "addc", "sub.cc", "subc", "mad.cc", "madc"), (t,), Version((4, 3), 20)) for t in ("u64", "s64")),
    *((("lop3",), (op,), Version((8, 2), 70)) for op in ("and", "or")),
    *((("cvt.pack",), (t,), Version((6, 5), 75)) for t in words("u4 s4 u2 s2")),
    *((("set", "slct", "cvt"), (t,), Version((1, 0), 13)) for t in ("f64",)),
    *((("add.f32", "sub.f32", "mul.f32"), (mode,), Version((1, 0), 20)) for mode in ("rm", "rp")),
    *((("fma", "rcp", "sqrt"), (t,), Version((2, 0), 20)) for t in ("f32",)),
    (("min.f32", "max.f32"), ("NaN",), Version((7, 0), 80)),
    (("min.f32", "max.f32"), ("xorsign",), Version((7, 2), 86)),
    (("cvt",), ("bf16",), Version((7, 0), 80)),
    *((("cvt",), ("bf16", word), Version((7, 8), 90)) for word in
      words("u8 s8 u16 s16 u32 s32 u64 s64 f16 f64 rni rzi rmi rpi")),
)  # fmt: skip

# Qualifiers of rows that are real but later than PTX ISA 8.5, and not supported: the version that has them.
_LATER = (
    (("st.async",), "mmio release global cta cluster gpu sys b8 b16 u8 u16 s8 s16", _V87),
    (("red.async",), "mmio release global cta gpu sys s64 b64", _V87),
    (("fence.proxy",), "generic::async", _V86),
    (("cp.async.bulk.tensor",), "tile::gather4 tile::scatter4 im2col::w im2col::w::128", _V86),
    (("cp.async.bulk.tensor",), "cta_group::1 cta_group::2", _V86),
    (("cp.async.bulk.prefetch.tensor",), "tile::gather4 im2col::w im2col::w::128", _V86),
    (("tensormap.replace",), "swizzle_atomicity", _V86),
    (("redux",), "f32 abs NaN", _V86),
    (("ldmatrix", "stmatrix"), " ".join(LATER_MATRICES), _V86),
    *(((opcode,), " ".join(names), SM100) for opcode, names in MULTIMEM_LATER.items()),
    *(((opcode,), " ".join(names), SM100) for opcode, names in LATER_TENSORS.items()),
    (("ld", "st"), "L2::evict_last L2::evict_normal L2::evict_first", Version((8, 8), 100)),
)
LATER: Mapping[tuple[str, str], Version] = MappingProxyType(
    {(opcode, word): version for opcodes, names, version in _LATER for opcode in opcodes for word in words(names)}
)

# Instructions of PTX ISA 8.5 and later that are known without a row (9.7; of an opcode with rows: its other forms).
INSTRUCTIONS = frozenset(
    words("""
    alloca brkpt brx call clusterlaunchcontrol cos ex2 istypep lg2 mma movmatrix pmevent rsqrt sin stackrestore
    stacksave suld suq sured sust tanh tcgen05 tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd
    vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4""")
)
# The versions of those that are later than PTX ISA 8.5.
LATER_INSTRUCTIONS: Mapping[str, Version] = MappingProxyType(
    {"tcgen05": SM100, "clusterlaunchcontrol": Version((8, 6), 100)}
)
# Of the others, the ones with something to say: opcode -> (what it is, hint).
NOT_YET: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "tcgen05": ("not supported yet", "tensor memory is declared instead of allocated: `.tmem .b32 t[4] @ cta 0;`"),
    }
)  # fmt: skip
