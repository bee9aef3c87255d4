"""What errors call the groups of qualifiers, and the hints for common slips."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
        "vec": ("vector size", "vector sizes"),
        "type": ("type", "types"),
        "op": ("operation", "operations"),
        "noftz": ("`.noftz`", "`.noftz`"),
        "acc": ("`.acc::f32`", "`.acc::f32`"),
        "level": ("level", "levels"),
        "kind": ("kind", "kinds"),
        "restrict": ("restriction", "restrictions"),
        "group": ("CTA group", "CTA groups"),
        "aligned": ("`.aligned`", "`.aligned`"),
        "sync": ("`.sync`", "`.sync`"),
        "mode": ("mode", "modes"),
        "cmp": ("comparison", "comparisons"),
        "bool": ("Boolean operation", "Boolean operations"),
        "sat": ("`.sat`", "`.sat`"),
        "uni": ("`.uni`", "`.uni`"),
        "to": ("`.to`", "`.to`"),
        "arrival": ("kind of arrival", "kinds of arrival"),
        "parity": ("`.parity`", "`.parity`"),
        "noinc": ("`.noinc`", "`.noinc`"),
        "read": ("`.read`", "`.read`"),
        "dst": ("destination state space", "destination state spaces"),
        "src": ("source state space", "source state spaces"),
        "completion": ("completion mechanism", "completion mechanisms"),
        "multicast": ("`.multicast::cluster`", "`.multicast::cluster`"),
        "cp_mask": ("`.cp_mask`", "`.cp_mask`"),
        "dim": ("dimension", "dimensions"),
        "load_mode": ("load mode", "load modes"),
        "proxy": ("pair of proxies", "pairs of proxies"),
        "field": ("field", "fields"),
        "b1024": ("`.b1024`", "`.b1024`"),
        "primary": ("primary priority", "primary priorities"),
        "secondary": ("secondary priority", "secondary priorities"),
        "shape": ("shape", "shapes"),
        "num": ("number of matrices", "numbers of matrices"),
        "trans": ("`.trans`", "`.trans`"),
        "satfinite": ("`.satfinite`", "`.satfinite`"),
        "dtype": ("type of D", "types of D"),
        "atype": ("type of A", "types of A"),
        "btype": ("type of B", "types of B"),
        "ctype": ("type of C", "types of C"),
        "matrix": ("matrix", "matrices"),
        "layout": ("layout", "layouts"),
        "alayout": ("layout of A", "layouts of A"),
        "blayout": ("layout of B", "layouts of B"),
        "element": ("type of the elements", "types of the elements"),
        "bitop": ("operation", "operations"),
        "popc": ("`.popc`", "`.popc`"),
        "round": ("rounding mode", "rounding modes"),
        "ftz": ("`.ftz`", "`.ftz`"),
        "cc": ("`.cc`", "`.cc`"),
        "shiftamt": ("`.shiftamt`", "`.shiftamt`"),
        "dir": ("direction", "directions"),
        "nan": ("`.NaN`", "`.NaN`"),
        "xorsign": ("`.xorsign`", "`.xorsign`"),
        "abs": ("`.abs`", "`.abs`"),
        "property": ("property", "properties"),
    }
)

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
