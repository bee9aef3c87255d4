"""The instruction table: for every instruction its legal qualifiers by group, operands, defaults and first version.

This is data; ``qualifiers.py`` and ``isa.py`` read it and nothing else knows what is legal. Sources: PTX ISA 8.5
section 9.7, semantics table section 3. A group is a set of qualifiers of which an instruction has at most one (two
for the types of ``cvt``); the order of qualifiers is free (semantics A43).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """The first PTX ISA version, as (major, minor), and the first target (``sm``) that have something."""

    ptx: tuple[int, int]
    sm: int = 0


_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Form:
    """One row. ``kind`` names the function of ``isa.py`` that makes the operation.

    ``groups`` maps a group to its legal spellings; ``required`` lists the groups that may not be left out;
    ``types_by`` is (group, {spelling: legal types}) where the types depend on another qualifier; ``slots`` are the
    operands, with ``?`` for optional ones; ``later`` are real qualifiers of the instruction that are not supported
    yet; ``fixed`` are facts that belong to the opcode (its proxy, its comparison).
    """

    opcode: str
    kind: str
    groups: Mapping[str, tuple[str, ...]]
    slots: tuple[str, ...]
    since: Version
    required: tuple[str, ...] = ()
    types_by: tuple[str, Mapping[str, tuple[str, ...]]] | None = None
    later: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SCOPES = _words("cta cluster gpu sys")
SHARED = _words("shared shared::cta shared::cluster")
STRONG_SPACES = ("global", *SHARED)
_EVICT = _words("L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate")
_PREFETCH = _words("L2::64B L2::128B L2::256B")
_HINT = ("L2::cache_hint",)
_MEMORY_TYPES = _words("b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64")
_BITS = _words("b16 b32 b64")
_UNSIGNED = _words("u16 u32 u64")
_SIGNED = _words("s16 s32 s64")
_INTEGERS = _UNSIGNED + _SIGNED
_VECTORS = _words("v2 v4 v8")
_FLOATS = _words("f16 f16x2 bf16 bf16x2 tf32 f32 f64")
_ROUNDING = _words("rn rz rm rp rni rzi rmi rpi rna ftz satfinite relu e4m3x2 e5m2x2 f32x2")
_MINMAX = _words("u32 s32 u64 s64")

ATOMIC_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": _words("u32 s32 u64"),
        "inc": ("u32",),
        "dec": ("u32",),
        "and": _words("b32 b64"),
        "or": _words("b32 b64"),
        "xor": _words("b32 b64"),
        "min": _MINMAX,
        "max": _MINMAX,
        "exch": _words("b32 b64"),
        "cas": _words("b16 b32 b64"),
    }
)
_REDUCTION_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {op: types for op, types in ATOMIC_TYPES.items() if op not in ("exch", "cas")}
)
_WIDENING = {"lo": _INTEGERS, "hi": _INTEGERS, "wide": _words("u16 u32 s16 s32")}
_COMPARISONS = {
    **dict.fromkeys(("eq", "ne"), (*_BITS, *_INTEGERS)),
    **dict.fromkeys(("lt", "le", "gt", "ge"), _INTEGERS),
    **dict.fromkeys(("lo", "ls", "hi", "hs"), _UNSIGNED),
}

_V1 = Version((1, 0))
_V6 = Version((6, 0), 70)


def _union(types: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for row in types.values() for t in row))


def _alu(opcode: str, slots: str, types: tuple[str, ...], kind: str = "alu", later: tuple[str, ...] = ()) -> Form:
    return Form(opcode, kind, {"type": types}, _words(slots), _V1, ("type",), later=later)


def _memory(opcode: str, orders: str, spaces: str, cop: str, slots: str, later: tuple[str, ...] = ()) -> Form:
    groups = {
        "sem": _words(orders),
        "mmio": ("mmio",),
        "scope": SCOPES,
        "space": _words(spaces) + SHARED,
        "cop": _words(cop),
        "evict": _EVICT,
        "hint": _HINT,
        "type": _MEMORY_TYPES,
    }
    if opcode == "ld":
        groups["prefetch"] = _PREFETCH
    later = (*_VECTORS, *_FLOATS, "b128", *later)
    kind = "load" if opcode == "ld" else "store"
    return Form(opcode, kind, groups, (*_words(slots), "policy?"), _V1, ("type",), later=later)


def _atomic(opcode: str, orders: str, types: Mapping[str, tuple[str, ...]], slots: str, since: Version) -> Form:
    groups = {
        "sem": _words(orders),
        "scope": SCOPES,
        "space": STRONG_SPACES,
        "op": tuple(types),
        "hint": _HINT,
        "type": _union(types),
    }
    later = (*_VECTORS, *_FLOATS, "b128", "noftz", "async")
    return Form(opcode, "atomic", groups, _words(slots), since, ("op", "type"), ("op", types), later)


_BAR_LATER = _words("red popc pred warp cluster wait")
_PROXY_LATER = (
    *_words("async async.global global shared::cta shared::cluster tensormap::generic"),
    *_words("async::generic generic::tensormap"),
)
_PROXIES = _words("alias surface texture constant")

_FORMS = (
    _memory("ld", "weak relaxed acquire volatile", "const global local param param::entry param::func",
            "ca cg cs lu cv", "d [a]", ("nc",)),
    _memory("st", "weak relaxed release volatile", "global local param param::func", "wb cg cs wt", "[a] b",
            ("async", "bulk")),
    _atomic("atom", "relaxed acquire release acq_rel", ATOMIC_TYPES, "d [a] b c? policy?", Version((1, 1), 11)),
    _atomic("red", "relaxed release", _REDUCTION_TYPES, "[a] b policy?", Version((1, 2), 11)),
    Form("fence", "fence", {"sem": ("sc", "acq_rel"), "scope": SCOPES}, (), _V6, ("scope",),
         later=("mbarrier_init", "sync_restrict::shared::cta", "sync_restrict::shared::cluster")),
    Form("membar", "membar", {"level": ("cta", "gl", "sys")}, (), Version((1, 4)), ("level",)),
    Form("fence.proxy", "proxy_fence", {"proxy": ("proxy",), "kind": _PROXIES}, (), Version((7, 5), 70), ("kind",),
         later=_PROXY_LATER),
    Form("membar.proxy", "proxy_fence", {"proxy": ("proxy",), "kind": ("alias",)}, (), Version((7, 5), 60), ("kind",),
         later=_PROXY_LATER),
    Form("bar", "barrier", {"level": ("cta",), "kind": ("sync", "arrive")}, ("a", "b?"), _V1, ("kind",),
         later=_BAR_LATER),
    Form("barrier", "barrier", {"level": ("cta",), "kind": ("sync", "arrive"), "aligned": ("aligned",)}, ("a", "b?"),
         Version((6, 0), 30), ("kind",), later=_BAR_LATER),
    _alu("mov", "d a", ("pred", *_BITS, *_INTEGERS), later=_FLOATS),
    _alu("add", "d a b", _INTEGERS, later=(*_FLOATS, *_ROUNDING, *_words("sat cc u16x2 s16x2"))),
    _alu("sub", "d a b", _INTEGERS, later=(*_FLOATS, *_ROUNDING, *_words("sat cc"))),
    Form("mul", "wide", {"mode": ("lo", "hi", "wide"), "type": _INTEGERS}, _words("d a b"), _V1, ("mode", "type"),
         ("mode", _WIDENING), (*_FLOATS, *_ROUNDING, "sat")),
    Form("mad", "wide", {"mode": ("lo", "hi", "wide"), "type": _INTEGERS}, _words("d a b c"), _V1, ("mode", "type"),
         ("mode", _WIDENING), (*_FLOATS, *_ROUNDING, "sat", "cc")),
    _alu("and", "d a b", ("pred", *_BITS)),
    _alu("or", "d a b", ("pred", *_BITS)),
    _alu("xor", "d a b", ("pred", *_BITS)),
    _alu("not", "d a", ("pred", *_BITS)),
    _alu("neg", "d a", _SIGNED, later=(*_FLOATS, "ftz")),
    _alu("abs", "d a", _SIGNED, later=(*_FLOATS, "ftz")),
    _alu("shl", "d a b", _BITS),
    _alu("shr", "d a b", (*_BITS, *_INTEGERS)),
    _alu("min", "d a b", _INTEGERS, later=(*_FLOATS, *_ROUNDING, *_words("u16x2 s16x2 NaN xorsign abs"))),
    _alu("max", "d a b", _INTEGERS, later=(*_FLOATS, *_ROUNDING, *_words("u16x2 s16x2 NaN xorsign abs"))),
    Form("setp", "setp", {"cmp": tuple(_COMPARISONS), "bool": ("and", "or", "xor"), "type": (*_BITS, *_INTEGERS)},
         _words("p a b c?"), _V1, ("cmp", "type"), ("cmp", _COMPARISONS),
         (*_FLOATS, *_words("ftz equ neu ltu leu gtu geu num nan"))),
    _alu("selp", "d a b p", (*_BITS, *_INTEGERS), "selp", _FLOATS),
    Form("cvt", "cvt", {"sat": ("sat",), "type": ("u8", *_UNSIGNED, "s8", *_SIGNED)}, ("d", "a"), _V1, ("type",),
         later=(*_FLOATS, *_ROUNDING, "pack")),
    Form("bra", "branch", {"uni": ("uni",)}, ("label",), _V1),
    Form("ret", "exit", {"uni": ("uni",)}, (), _V1),
    Form("exit", "exit", {}, (), _V1),
)

FORMS: Mapping[str, Form] = MappingProxyType({form.opcode: form for form in _FORMS})


# -- the untyped dialect: 64-bit signed throughout, locations without brackets, any order on any atomic -------------

_DIALECT_ATOMICS = (*ATOMIC_TYPES, "sub")


def _dialect_memory(opcode: str, kind: str, orders: str, slots: str, proxy: str) -> Form:
    groups: dict[str, tuple[str, ...]] = {"sem": _words(orders), "scope": SCOPES}
    if proxy == "generic":
        groups["space"] = STRONG_SPACES
    if kind == "atomic":
        groups["op"] = _DIALECT_ATOMICS
    required = ("op",) if kind == "atomic" else ()
    return Form(opcode, kind, groups, _words(slots), _V6, required, fixed={"proxy": proxy})


def _dialect_alu(opcode: str, slots: str) -> Form:
    return Form(opcode, "alu", {}, _words(slots), _V1)


_LOAD_ORDERS = "weak relaxed acquire volatile"
_STORE_ORDERS = "weak relaxed release volatile"
_ANY_ORDER = "relaxed acquire release acq_rel"

_DIALECT_FORMS = (
    _dialect_memory("ld", "load", _LOAD_ORDERS, "d a", "generic"),
    _dialect_memory("suld", "load", _LOAD_ORDERS, "d a", "surface"),
    _dialect_memory("tld", "load", _LOAD_ORDERS, "d a", "texture"),
    _dialect_memory("cold", "load", _LOAD_ORDERS, "d a", "constant"),
    _dialect_memory("st", "store", _STORE_ORDERS, "a b", "generic"),
    _dialect_memory("sust", "store", _STORE_ORDERS, "a b", "surface"),
    _dialect_memory("atom", "atomic", _ANY_ORDER, "d a b c?", "generic"),
    _dialect_memory("suatom", "atomic", _ANY_ORDER, "d a b c?", "surface"),
    _dialect_memory("red", "atomic", _ANY_ORDER, "a b c?", "generic"),
    _dialect_memory("sured", "atomic", _ANY_ORDER, "a b c?", "surface"),
    FORMS["fence"],
    FORMS["membar"],
    Form("fence.proxy", "proxy_fence", {"proxy": ("proxy",), "kind": (*_PROXIES, "generic")}, (),
         Version((7, 5), 70), ("kind",)),
    FORMS["membar.proxy"],
    Form("bar", "dialect_barrier", {"level": ("cta",), "kind": ("sync", "arrive")}, _words("i b? q?"), _V1, ("kind",)),
    _dialect_alu("mov", "d a"),
    _dialect_alu("add", "d a b"),
    _dialect_alu("sub", "d a b"),
    _dialect_alu("mul", "d a b"),
    _dialect_alu("mad", "d a b c"),
    _dialect_alu("and", "d a b"),
    _dialect_alu("or", "d a b"),
    _dialect_alu("xor", "d a b"),
    _dialect_alu("not", "d a"),
    _dialect_alu("neg", "d a"),
    _dialect_alu("abs", "d a"),
    _dialect_alu("shl", "d a b"),
    _dialect_alu("shr", "d a b"),
    _dialect_alu("min", "d a b"),
    _dialect_alu("max", "d a b"),
    Form("goto", "branch", {}, ("label",), _V1),
    *(Form("b" + op, "compare_branch", {}, _words("a b label"), _V1, fixed={"cmp": op})
      for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    FORMS["ret"],
    FORMS["exit"],
)

DIALECT: Mapping[str, Form] = MappingProxyType({form.opcode: form for form in _DIALECT_FORMS})


# -- rules between qualifiers --------------------------------------------------------------------------------------

# (spelling present, group refused beside it, what to say after "takes no ...")
EXCLUDES: tuple[tuple[str, str, str], ...] = (
    ("weak", "scope", "a weak access has no scope; .relaxed has one"),
    ("volatile", "scope", "a volatile access is relaxed at .sys scope"),
    ("volatile", "cop", "a volatile access may not be cached"),
    ("volatile", "evict", "eviction priorities belong to weak, relaxed, acquire and release accesses"),
    ("volatile", "hint", "cache hints belong to weak, relaxed, acquire and release accesses"),
    ("mmio", "cop", "the only form is .mmio.relaxed.sys{.global}.type"),
    ("mmio", "evict", "the only form is .mmio.relaxed.sys{.global}.type"),
    ("mmio", "hint", "the only form is .mmio.relaxed.sys{.global}.type"),
    ("mmio", "prefetch", "the only form is .mmio.relaxed.sys{.global}.type"),
    ("relaxed", "cop", "cache operators belong to weak accesses"),
    ("acquire", "cop", "cache operators belong to weak accesses"),
    ("release", "cop", "cache operators belong to weak accesses"),
)

# What a reader may call the members of a group, one and several.
GROUPS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "sem": ("memory order", "memory orders"),
        "mmio": ("`.mmio`", "`.mmio`"),
        "scope": ("scope", "scopes"),
        "space": ("state space", "state spaces"),
        "cop": ("cache operator", "cache operators"),
        "evict": ("eviction priority", "eviction priorities"),
        "hint": ("cache hint", "cache hints"),
        "prefetch": ("prefetch size", "prefetch sizes"),
        "type": ("type", "types"),
        "op": ("operation", "operations"),
        "level": ("level", "levels"),
        "kind": ("kind", "kinds"),
        "proxy": ("`.proxy`", "`.proxy`"),
        "aligned": ("`.aligned`", "`.aligned`"),
        "mode": ("mode", "modes"),
        "cmp": ("comparison", "comparisons"),
        "bool": ("Boolean operation", "Boolean operations"),
        "sat": ("`.sat`", "`.sat`"),
        "uni": ("`.uni`", "`.uni`"),
    }
)

# Hints for slips that are common enough to have an answer of their own: (opcode, qualifier) -> hint.
HINTS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("membar", "gpu"): "the level of .gpu scope is called .gl: membar.gl",
        ("membar", "cluster"): "membar has the levels .cta .gl .sys; .cluster needs fence.sc.cluster",
        ("fence", "gl"): "the scope of membar.gl is called .gpu",
        ("fence", "acquire"): "fence.acquire is in PTX ISA 8.6 and later; in 8.5 write fence.acq_rel",
        ("fence", "release"): "fence.release is in PTX ISA 8.6 and later; in 8.5 write fence.acq_rel",
        ("fence", "relaxed"): "a fence is .sc or .acq_rel (the default)",
        ("ld", "release"): "a load can acquire; a store can release",
        ("ld", "acq_rel"): "a load can be .acquire; only atom and fence have .acq_rel",
        ("ld", "sc"): "PTX has no sequentially consistent load: use fence.sc before it",
        ("st", "acquire"): "a store can release; a load can acquire",
        ("st", "acq_rel"): "a store can be .release; only atom and fence have .acq_rel",
        ("st", "sc"): "PTX has no sequentially consistent store: use fence.sc before it",
        ("st", "const"): "stores to .const are illegal",
        ("red", "acquire"): "red returns nothing, so it can't acquire; use atom",
        ("red", "acq_rel"): "red returns nothing, so it can't acquire; use atom",
        ("red", "exch"): "red has no .exch; use atom.exch",
        ("red", "cas"): "red has no .cas; use atom.cas",
        ("atom", "sub"): "add the negative value with .add",
        ("red", "sub"): "add the negative value with .add",
        ("atom", "weak"): "atomics are strong; the default is .relaxed.gpu",
        ("red", "weak"): "atomics are strong; the default is .relaxed.gpu",
        ("atom", "sc"): "the strongest order of an atomic is .acq_rel; put fence.sc before it",
        ("atom", "volatile"): "atomics are strong; the default is .relaxed.gpu",
        ("fence.proxy", "generic"): "in PTX the kind names the other proxy, such as .alias",
    }
)

# First versions that are later than the instruction's: (opcodes, or none for all; qualifiers, all of which must be
# there; version). PTX ISA notes and target notes of 9.7.10.8, 9.7.10.11 and 9.7.14.1, .4, .5, .6.
_ATOMICS = ("atom", "red")
SINCE: tuple[tuple[tuple[str, ...], tuple[str, ...], Version], ...] = (
    (("ld", "st"), ("volatile",), Version((1, 1))),
    *(((), (order,), _V6) for order in ("weak", "relaxed", "acquire", "release", "acq_rel")),
    ((), ("cluster",), Version((7, 8), 90)),
    ((), ("shared::cta",), Version((7, 8), 30)),
    ((), ("shared::cluster",), Version((7, 8), 90)),
    ((), ("param::entry",), Version((8, 3))),
    ((), ("param::func",), Version((8, 3))),
    ((), ("mmio",), Version((8, 2), 70)),
    *(((), (hint,), Version((7, 4), 70)) for hint in _EVICT),
    *(((), (hint,), Version((7, 4), 75)) for hint in _PREFETCH),
    ((), ("L2::256B",), Version((7, 4), 80)),
    ((), _HINT, Version((7, 4), 80)),
    *((_ATOMICS, (scope,), Version((5, 0), 60)) for scope in SCOPES),
    *((_ATOMICS, (op, t), Version((3, 1), 32)) for op in ("and", "or", "xor", "min", "max")
      for t in ("b64", "u64", "s64")),
    (("atom",), ("cas", "b16"), Version((6, 3), 70)),
    (("membar",), ("sys",), Version((2, 0), 20)),
    (("bar",), ("arrive",), Version((2, 0), 20)),
    (("bar", "barrier"), ("cta",), Version((7, 8), 20)),
)

# Instructions of PTX ISA 8.5 that are not in the table (9.7; `wgmma`, `mbarrier`, ... with all their forms).
OTHER_INSTRUCTIONS = frozenset(
    _words("""
    activemask addc alloca applypriority bfe bfi bfind bmsk brev brkpt brx call clz cnot copysign cos cp createpolicy
    cvta discard div dp2a dp4a elect ex2 fma fns getctarank griddepcontrol isspacep istypep ldmatrix ldu lg2 lop3 mad24
    madc mapa match mbarrier mma movmatrix mul24 multimem nanosleep pmevent popc prefetch prefetchu prmt rcp redux rem
    rsqrt sad set setmaxnreg shf shfl sin slct sqrt stackrestore stacksave stmatrix subc suld suq sured sust szext tanh
    tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4
    vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma""")
)

SPECIAL_REGISTERS = frozenset(
    _words("""
    tid ntid laneid warpid nwarpid ctaid nctaid smid nsmid gridid is_explicit_cluster clusterid nclusterid
    cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank lanemask_eq lanemask_le lanemask_lt lanemask_ge
    lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size aggr_smem_size
    dynamic_smem_size current_graph_exec reserved_smem_offset_begin""")
)
