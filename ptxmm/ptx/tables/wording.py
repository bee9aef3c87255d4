"""What errors call the groups of qualifiers, and the hints for common slips."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.qualified import Form

# What a reader may call a member of a group.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "sem": "memory order",
        "scope": "scope",
        "space": "state space",
        "cop": "cache operator",
        "evict": "eviction priority",
        "hint": "cache hint",
        "prefetch": "prefetch size",
        "vec": "vector size",
        "type": "type",
        "op": "operation",
        "level": "level",
        "kind": "kind",
        "restrict": "restriction",
        "group": "CTA group",
        "mode": "mode",
        "cmp": "comparison",
        "bool": "Boolean operation",
        "arrival": "kind of arrival",
        "dst": "destination state space",
        "src": "source state space",
        "completion": "completion mechanism",
        "dim": "dimension",
        "load_mode": "load mode",
        "proxy": "pair of proxies",
        "field": "field",
        "primary": "primary priority",
        "secondary": "secondary priority",
        "shape": "shape",
        "num": "number of matrices",
        "dtype": "type of D",
        "atype": "type of A",
        "btype": "type of B",
        "ctype": "type of C",
        "matrix": "matrix",
        "layout": "layout",
        "alayout": "layout of A",
        "blayout": "layout of B",
        "element": "type of the elements",
        "bitop": "operation",
        "round": "rounding mode",
        "dir": "direction",
        "property": "property",
    }
)


def named(form: Form, group: str) -> tuple[str, str]:
    """What a reader may call the members of ``group``, one and several; one that has but one member by that."""
    one = _NAMES.get(group)
    if one is None:
        (word,) = form.groups[group]
        return f"`.{word}`", f"`.{word}`"
    head, of, rest = one.partition(" of ")
    many = f"{head[:-1]}ies" if head.endswith("y") else f"{head[:-1]}ces" if head.endswith("x") else f"{head}s"
    return one, f"{many}{of}{rest}"


# Words of CUDA, and of other languages, for the scopes and types of PTX.
SCOPE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "device": "gpu",
        "dev": "gpu",
        "block": "cta",
        "thread_block": "cta",
        "workgroup": "cta",
        "agent": "gpu",
        "system": "sys",
        "grid": "gpu",
        "gl": "gpu",
        "thread": "cta",
        "warp": "cta",
    }
)
TYPE_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "int": ("s32",),
        "uint": ("u32",),
        "unsigned": ("u32",),
        "float": ("f32",),
        "double": ("f64",),
        "half": ("f16", "b16"),
        "long": ("s64",),
        "short": ("s16",),
        "char": ("s8",),
        "bool": ("u8", "pred"),
        **{f"i{bits}": (f"s{bits}", f"u{bits}", f"b{bits}") for bits in (8, 16, 32, 64)},
        **{
            f"{sign}int{bits}{end}": (f"{'u' if sign else 's'}{bits}",)
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
            for end in ("", "_t")
        },
    }
)

# Hints for slips that are common enough to have an answer of their own: (opcode, qualifier) -> hint.
HINTS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("membar", "gpu"): "the level of .gpu scope is called .gl: membar.gl",
        ("membar", "cluster"): "membar has the levels .cta .gl .sys; .cluster needs fence.sc.cluster",
        ("fence", "gl"): "the scope of membar.gl is called .gpu",
        ("fence", "relaxed"): "a fence is .sc or .acq_rel (the default)",
        ("ld", "release"): "a load can acquire; a store can release",
        ("ld", "acq_rel"): "a load can be .acquire; only atom and fence have .acq_rel",
        ("ld", "sc"): "PTX has no sequentially consistent load: use fence.sc before it",
        ("st", "acquire"): "a store can release; a load can acquire",
        ("st", "acq_rel"): "a store can be .release; only atom and fence have .acq_rel",
        **{(op, "seq_cst"): f"PTX has no sequentially consistent {what}: put fence.sc before it"
           for op, what in (("ld", "load"), ("st", "store"), ("atom", "atomic"), ("red", "reduction"))},
        ("fence", "seq_cst"): "it is called fence.sc",
        ("st", "sc"): "PTX has no sequentially consistent store: use fence.sc before it",
        ("st", "const"): "stores to .const are illegal",
        ("st", "param::entry"): "the parameters of a kernel are read only",
        **{(op, t): f"move its bits: {op}.b16" for op in ("ld", "st") for t in ("f16", "bf16")},
        **{(op, t): f"move its bits: {op}.b32" for op in ("ld", "st") for t in ("f16x2", "bf16x2")},
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
        ("multimem.red", "acquire"): "multimem.red returns nothing, so it can't acquire",
        ("multimem.red", "weak"): "multimem.red is strong; the default is .relaxed.sys",
        ("multimem.ld_reduce", "release"): "a load can acquire; multimem.st can release",
        ("multimem.st", "acquire"): "a store can release; multimem.ld_reduce can acquire",
        ("fence.proxy", "generic"): "in PTX the kind names the other proxy, such as .alias",
        ("fence.proxy", "shared"): "write .shared::cta or .shared::cluster",
        ("fence.mbarrier_init", "acquire"): "the only form is fence.mbarrier_init.release.cluster",
        ("fence.mbarrier_init", "cta"): "the only form is fence.mbarrier_init.release.cluster",
        ("fence.mbarrier_init", "gpu"): "the only form is fence.mbarrier_init.release.cluster",
        ("barrier", "cluster"): "write barrier.cluster.arrive or barrier.cluster.wait",
        ("bar", "cluster"): "write barrier.cluster.arrive or barrier.cluster.wait",
        ("barrier", "warp"): "write bar.warp.sync",
        ("barrier.cluster.arrive", "acquire"): "an arrival releases; barrier.cluster.wait acquires",
        ("barrier.cluster.arrive", "acq_rel"): "an arrival releases; barrier.cluster.wait acquires",
        ("barrier.cluster.wait", "release"): "a wait acquires; barrier.cluster.arrive releases",
        ("barrier.cluster.wait", "relaxed"): "only the arrival can be .relaxed: barrier.cluster.arrive.relaxed",
        **{(f"mbarrier.{op}", "shared::cluster"): "only arrive, arrive_drop, expect_tx and complete_tx can be remote"
           for op in ("init", "inval", "test_wait", "try_wait")},
        **{(f"mbarrier.{op}", scope): "an mbarrier is used in its cluster: .cta or .cluster"
           for op in ("arrive", "arrive_drop", "test_wait", "try_wait", "expect_tx", "complete_tx")
           for scope in ("gpu", "sys")},
        ("mbarrier.arrive", "acquire"): "an arrival releases; a wait acquires",
        ("mbarrier.test_wait", "release"): "a wait acquires; an arrival releases",
        ("mbarrier.try_wait", "release"): "a wait acquires; an arrival releases",
        ("cp.async", "shared::cluster"): "cp.async writes the shared memory of the own CTA; cp.async.bulk any",
        ("cp.async.bulk", "shared"): "write .shared::cta or .shared::cluster",
    }
)  # fmt: skip
