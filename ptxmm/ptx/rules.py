"""The rules between the qualifiers of one instruction, by kind of row (PTX ISA 9.7, semantics section 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxmm.ptx import rules_arithmetic
from ptxmm.ptx.qualifiers import Qualified, at, dotted, shown
from ptxmm.ptx.tables.copies import BULK_DIRECTIONS, BULK_REDUCTIONS, REDUCTION_DIRECTIONS, TENSOR_DIRECTIONS
from ptxmm.ptx.tables.form import STRONG_SPACES
from ptxmm.ptx.tables.matrices import INTEGER_COLUMNS, MIXED, PRODUCTS
from ptxmm.ptx.tables.memory import VECTOR_ATOMICS
from ptxmm.ptx.tables.wording import GROUPS

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
    ("mmio", "vec", "the only form is .mmio.relaxed.sys{.global}.type"),
    ("relaxed", "cop", "cache operators belong to weak accesses"),
    ("acquire", "cop", "cache operators belong to weak accesses"),
    ("release", "cop", "cache operators belong to weak accesses"),
)
_GLOBAL_ONLY = ("evict", "hint", "prefetch")
_VECTOR_BYTES = 16
_MULTIMEM_BITS = (32, 64, 128)


def check(q: Qualified) -> None:
    """Check what no single group says. Raises ``PtxmmError`` of kind ``isa``."""
    if "src" in q.chosen and "dst" in q.chosen:
        _check_order(q)
    rule = _RULES.get(q.form.kind)
    if rule is not None and not q.dialect:
        rule(q)
    elif q.form.kind in ("load", "store"):
        _check_access(q)


def _check_order(q: Qualified) -> None:
    """The order of two state spaces says which is the destination; no other order has a meaning (A43)."""
    dst, src = q.span("dst"), q.span("src")
    if (src.line, src.column) < (dst.line, dst.column):
        right = f"write .{q.chosen['dst']}.{q.chosen['src']}"
        message = f"the destination comes first: `.{q.chosen['dst']}` before `.{q.chosen['src']}`"
        raise at(src, message, hint=right)


def _check_access(q: Qualified) -> None:
    """Memory order, scope, state space and cache qualifiers of loads and stores (9.7.10.8 to .11)."""
    opcode, sem, space = q.form.opcode, q.get("sem"), q.get("space")
    _check_exclusions(q)
    _check_cache(q)
    if "mmio" in q.chosen:
        _check_mmio(q)
    _check_scope(q)
    if sem not in (None, "weak") and space is not None and space not in STRONG_SPACES:
        message = f"`{opcode}.{sem}` can't access .{space}"
        raise at(q.span("space"), message, hint=f"state spaces of strong accesses: {dotted(STRONG_SPACES)}")
    function = ("param", "param::func") if opcode == "st" else ("param::func",)  # of a load, .param may be a kernel's
    if space in function and q.instruction.guard is not None:
        raise at(q.instruction.guard.span, f"`{opcode}.{space}` takes no guard", hint="branch around the instruction")
    _check_vector(q)


def _check_exclusions(q: Qualified) -> None:
    """What a memory order excludes."""
    opcode, sem = q.form.opcode, q.get("sem")
    for spelling, group, why in EXCLUDES:
        if spelling in (sem, q.get("mmio")) and group in q.chosen:
            message = f"`{opcode}.{spelling}` takes no {GROUPS[group][0]}: `.{q.chosen[group]}`"
            raise at(q.span(group), message, hint=why)


def _check_scope(q: Qualified) -> None:
    """A strong access names its scope, a weak one has none."""
    opcode, sem = q.form.opcode, q.get("sem")
    if sem in ("relaxed", "acquire", "release") and "scope" not in q.chosen:
        scopes = dotted(q.form.groups["scope"])
        raise at(q.instruction.opcode_span, f"`{opcode}.{sem}` needs a scope: {scopes}")
    if sem is None and "scope" in q.chosen:
        orders = [s for s in q.form.groups["sem"] if s not in ("weak", "volatile")]
        raise at(
            q.span("scope"),
            f"`{opcode}` is weak without a memory order, and a weak access has no scope: `.{q.chosen['scope']}`",
            hint=f"memory orders that take a scope: {dotted(orders)}",
        )


def _check_cache(q: Qualified) -> None:
    """Hints to the caches (9.7.10.1, .2)."""
    if "cop" in q.chosen and "evict" in q.chosen:
        message = f"`.{q.chosen['cop']}` and `.{q.chosen['evict']}` exclude each other"
        raise at(q.span("evict"), message, hint="give a cache operator or an eviction priority")
    space = q.get("space")
    if space in (None, "global"):
        return
    for group in _GLOBAL_ONLY:
        if group in q.chosen:
            message = f"`.{q.chosen[group]}` is for .global and generic addresses, not for .{space}"
            raise at(q.span(group), message)


def _check_vector(q: Qualified) -> None:
    """At most 16 bytes; 32 in .global memory since PTX ISA 8.8 (9.7.10.8)."""
    if "vec" not in q.chosen:
        return
    vec, typ = q.chosen["vec"], q.types[0]
    size = q.count * typ.bytes
    if size <= _VECTOR_BYTES and vec != "v8":
        return
    shown_ = f"`{q.form.opcode}.{vec}.{typ.name}`"
    if (vec, typ.bits) not in (("v8", 32), ("v4", 64)) or q.form.opcode == "ldu" or q.form.kind == "async_store":
        if vec == "v8" and size <= _VECTOR_BYTES:
            raise at(q.span("vec"), f"{shown_}: .v8 is for types of 32 bits", hint="vector sizes: .v2 .v4")
        raise at(q.span("vec"), f"{shown_} has {size} bytes: a vector has at most {_VECTOR_BYTES}")
    if q.get("space") not in (None, "global"):
        raise at(q.span("space"), f"{shown_} accesses .global, not .{q.chosen['space']}")


def _check_mmio(q: Qualified) -> None:
    opcode, hint = q.form.opcode, f"write {q.form.opcode}.mmio.relaxed.sys{{.global}}.type"
    if q.get("sem") != "relaxed":
        raise at(q.span("sem" if "sem" in q.spans else "mmio"), f"`{opcode}.mmio` must be .relaxed", hint=hint)
    if q.get("scope") != "sys":
        raise at(q.span("scope" if "scope" in q.spans else "mmio"), f"`{opcode}.mmio` must have .sys scope", hint=hint)
    if q.get("space") not in (None, "global"):
        message = f"`{opcode}.mmio` can't access .{q.chosen['space']}"
        raise at(q.span("space"), message, hint=hint)


def _check_atomic(q: Qualified) -> None:
    """Vectors, packed and half types, cache hints (9.7.14.5, .6)."""
    _check_cache(q)
    opcode, op, name, vec = q.form.opcode, q.chosen["op"], q.chosen["type"], q.get("vec")
    half = q.types[0].kind in ("f", "bf") and q.types[0].bits == 16
    what = f"`{opcode}.{op}.{name}`"
    if half and "noftz" not in q.chosen:
        raise at(q.span("type"), f"{what} needs `.noftz`", hint=f"write {opcode}.{op}.noftz.{name}")
    if not half and "noftz" in q.chosen:
        raise at(q.span("noftz"), f"{what} takes no `.noftz`", hint="only .f16 .f16x2 .bf16 .bf16x2 have it")
    if half and vec is None and op != "add":
        raise at(q.span("op"), f"{what} has vectors only", hint=f"vector sizes: {dotted(VECTOR_ATOMICS[name][1])}")
    if op == "cas" and "hint" in q.chosen:
        raise at(q.span("hint"), "`atom.cas` takes no cache hint")
    if vec is None:
        return
    ops, sizes = VECTOR_ATOMICS.get(name, ((), ()))
    if op not in ops:
        legal = "types of vectors: .f32 .f16 .f16x2 .bf16 .bf16x2; operations: .add (and .min .max of 16-bit types)"
        raise at(q.span("vec"), f"{what} has no vectors", hint=legal)
    if vec not in sizes:
        raise at(q.span("vec"), f"{what} has no .{vec}", hint=f"vector sizes: {dotted(sizes)}")
    if q.get("space") not in (None, "global"):
        message = f"a vector of {what} is in .global memory, not .{q.chosen['space']}"
        raise at(q.span("space"), message)


def _check_multimem(q: Qualified) -> None:
    """Memory order and scope, vectors, ``.acc::f32`` (9.7.10.13). What ``.relaxed`` and the like mean without a scope
    is not said of loads and stores; ``multimem.red`` has defaults for both."""
    opcode, name, vec, typ = q.form.opcode, q.chosen["type"], q.get("vec"), q.types[0]
    if q.form.fixed["kind"] != "red":
        _check_exclusions(q)
        _check_scope(q)
    if "acc" in q.chosen and (typ.bits != 16 or q.chosen["op"] != "add"):
        message = f"`{opcode}.{q.chosen['op']}.{name}` takes no `.acc::f32`"
        raise at(q.span("acc"), message, hint="only .add of .f16 .f16x2 .bf16 .bf16x2 has it")
    if typ.kind not in ("f", "bf"):
        if vec is not None:
            raise at(q.span("vec"), f"`{opcode}` of .{name} has no vectors", hint="only floating-point types have them")
        return
    if typ.bits == 64 and vec is not None:
        raise at(q.span("vec"), f"`{opcode}` of .f64 has no vectors")
    legal = [f"v{n}" for n in (2, 4, 8) if n * q.packed * typ.bits in _MULTIMEM_BITS]
    if q.count * q.packed * typ.bits not in _MULTIMEM_BITS:
        message = f"`{opcode}` of .{name} {'is a vector' if vec is None else f'has no .{vec}'}"
        raise at(q.span("type" if vec is None else "vec"), message, hint=f"vector sizes: {dotted(legal)}")


def _check_fence(q: Qualified) -> None:
    """The restricted fences of PTX ISA 8.6 (9.7.13.4 of PTX ISA 9.0)."""
    if "restrict" not in q.chosen:
        return
    forms = ("acquire.sync_restrict::shared::cluster.cluster", "release.sync_restrict::shared::cta.cluster")
    if f"{q.get('sem')}.{q.chosen['restrict']}.{q.chosen['scope']}" not in forms:
        hint = ", ".join(f"{q.form.opcode}.{form}" for form in forms)
        raise at(q.span("restrict"), f"there is no such restricted fence of `{shown(q)}`", hint=hint)


def _check_proxy_fence(q: Qualified) -> None:
    if "space" in q.chosen and q.chosen["kind"] != "async":
        message = f"`{q.form.opcode}.{q.chosen['kind']}` takes no state space: `.{q.chosen['space']}`"
        raise at(q.span("space"), message, hint=f"only {q.form.opcode}.async has one")


def _check_arrival(q: Qualified) -> None:
    """``.noComplete`` is for the own CTA (9.7.14.15.13)."""
    if q.get("arrival") != "noComplete":
        return
    for group, value in (("sem", "relaxed"), ("scope", "cluster"), ("space", "shared::cluster")):
        if q.get(group) == value:
            raise at(q.span(group), f"`{q.form.opcode}.noComplete` takes no `.{value}`")


def _check_direction(q: Qualified, directions: Mapping[tuple[str, str], str]) -> None:
    """State spaces with their completion mechanism, and multicast and cache hints (9.7.10.24.6, .7, .9)."""
    dst, src = q.chosen["dst"], q.chosen["src"]
    name = f"{q.form.opcode}.{dst}.{src}"
    if (dst, src) not in directions:
        legal = ", ".join(f".{a}.{b}" for a, b in directions)
        raise at(q.span("dst"), f"`{q.form.opcode}` has no direction `.{dst}.{src}`", hint=f"directions: {legal}")
    needed = directions[dst, src]
    if q.chosen["completion"] != needed:
        message = f"`{name}` completes by `.{needed}`, not by `.{q.chosen['completion']}`"
        raise at(q.span("completion"), message)
    if "multicast" in q.chosen and (dst, src) != ("shared::cluster", "global"):
        hint = "only .shared::cluster.global has it"
        raise at(q.span("multicast"), f"`{name}` takes no `.multicast::cluster`", hint=hint)
    if "cp_mask" in q.chosen and (dst, src) != ("global", "shared::cta"):
        raise at(q.span("cp_mask"), f"`{name}` takes no `.cp_mask`", hint="only .global.shared::cta has it")
    if "hint" in q.chosen and "global" not in (dst, src):
        raise at(q.span("hint"), f"`{name}` takes no cache hint", hint="one of the state spaces must be .global")


def _check_bulk(q: Qualified) -> None:
    if "op" not in q.chosen:
        _check_direction(q, BULK_DIRECTIONS)
        return
    _check_direction(q, REDUCTION_DIRECTIONS)
    dst, op, name = q.chosen["dst"], q.chosen["op"], q.chosen["type"]
    legal = BULK_REDUCTIONS[dst, op]
    if name not in legal:
        message = f"`{q.form.opcode}` to .{dst} has no .{op}.{name}"
        raise at(q.span("type"), message, hint=f"types of .{op}: {dotted(legal)}")
    needed = op == "add" and name in ("f16", "bf16")
    if needed and "noftz" not in q.chosen:
        raise at(q.span("type"), f"`{q.form.opcode}.add.{name}` needs `.noftz`", hint=f"write .add.noftz.{name}")
    if "noftz" in q.chosen and not needed:
        message = f"`{q.form.opcode}.{op}.{name}` takes no `.noftz`"
        raise at(q.span("noftz"), message, hint="only .add.noftz.f16 and .add.noftz.bf16 have it")


def _check_tensor(q: Qualified) -> None:
    """Load modes: ``im2col`` reads, ``im2col_no_offs`` writes, both from three dimensions on (9.7.10.24.9)."""
    if "completion" in q.chosen:
        _check_direction(q, TENSOR_DIRECTIONS)
    mode = q.get("load_mode")
    if mode in (None, "tile"):
        return
    writes = q.get("dst") == "global"
    if (mode == "im2col_no_offs") != writes:
        right = "im2col_no_offs" if writes else "im2col"
        raise at(q.span("load_mode"), f"`{q.form.opcode}` in this direction takes no `.{mode}`", hint=f"write .{right}")
    if q.chosen["dim"] in ("1d", "2d"):
        raise at(q.span("dim"), f"`.{mode}` needs at least three dimensions, not .{q.chosen['dim']}")


def _check_prefetch(q: Qualified) -> None:
    """Levels and state spaces (9.7.10.14)."""
    level, space = q.chosen["level"], q.get("space")
    legal = {"tensormap": (None, "const", "param"), "L1": (None, "global", "local"), "L2": (None, "global", "local")}
    if space not in legal.get(level, ("global",)):
        if space is None:
            raise at(q.instruction.opcode_span, f"`prefetch.{level}` needs `.global`")
        raise at(q.span("space"), f"`prefetch.{space}` takes no `.{level}`")


def _check_field(q: Qualified) -> None:
    """The type of a field of a tensor map (9.7.10.25)."""
    field = q.chosen["field"]
    needed = "b64" if field in ("global_address", "global_stride") else "b32"
    if q.chosen["type"] != needed:
        raise at(q.span("type"), f"the field .{field} of a tensor map has type .{needed}")


def _check_product(q: Qualified) -> None:
    """Types, shapes, ``.satfinite`` and ``.and.popc`` of ``wgmma.mma_async{.sp}`` (9.7.16.2, .3, .5.2, .6.4)."""
    opcode, a, b, shape = q.form.opcode, q.chosen["atype"], q.chosen["btype"], q.chosen["shape"]
    legal = next((tuple(sorted(pair)) for pair in MIXED if a in pair), (a,))
    if b not in legal:
        raise at(q.span("btype"), f"`{opcode}` multiplies .{a} by {dotted(legal)}, not by .{b}")
    depth, accumulators = PRODUCTS[a]
    if q.chosen["dtype"] not in accumulators:
        message = f"`{opcode}` of .{a} has no accumulator .{q.chosen['dtype']}"
        raise at(q.span("dtype"), message, hint=f"accumulators of .{a}: {dotted(accumulators)}")
    integer = q.chosen["dtype"] == "s32"
    depth *= 2 if opcode.endswith(".sp") else 1
    rows, _, found = shape.partition("k")
    if found != str(depth):
        message = f"`{opcode}` of .{a} has shapes with k{depth}, not .{shape}"
        raise at(q.span("shape"), message, hint=f"write .{rows}k{depth}")
    if integer and int(rows.rpartition("n")[2]) not in INTEGER_COLUMNS:
        hint = "n is 8, 16, 24, 32 or a multiple of 16"
        raise at(q.span("shape"), f"`{opcode}` of .{a} has no shape .{shape}", hint=hint)
    if "satfinite" in q.chosen and (not integer or a == "b1"):
        raise at(q.span("satfinite"), f"`{opcode}` of .{a} takes no `.satfinite`", hint="only .s8 and .u8 have it")
    for group, word in (("bitop", "and"), ("popc", "popc")):
        if a == "b1" and group not in q.chosen:
            raise at(q.instruction.opcode_span, f"`{opcode}` of .b1 needs `.{word}`", hint="write .b1.b1.and.popc")
        if a != "b1" and group in q.chosen:
            raise at(q.span(group), f"`{opcode}` of .{a} takes no `.{word}`", hint="only .b1 has .and.popc")


_RULES: Mapping[str, Callable[[Qualified], None]] = {
    "load": _check_access,
    "store": _check_access,
    "atomic": _check_atomic,
    "async_store": _check_vector,
    "multimem": _check_multimem,
    "fence": _check_fence,
    "generic_to_async_fence": _check_fence,
    "proxy_fence": _check_proxy_fence,
    "mbarrier_arrive": _check_arrival,
    "bulk_copy": _check_bulk,
    "bulk_tensor": _check_tensor,
    "tensor_prefetch": _check_tensor,
    "prefetch": _check_prefetch,
    "tensormap_replace": _check_field,
    "wgmma": _check_product,
    **rules_arithmetic.RULES,
}
