"""The rules between the qualifiers of loads, stores, atomics and multimem operations (PTX ISA 9.7.10, 9.7.14)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.qualified import Qualified, at, dotted
from ptxmm.ptx.tables.form import STRONG_SPACES, words
from ptxmm.ptx.tables.wording import named

# Which operations a vector of a type has, and which sizes (the tables of 9.7.14.5 and .6).
VECTOR_ATOMICS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "f32": (("add",), words("v2 v4")),
        "f16": (words("add min max"), words("v2 v4 v8")),
        "bf16": (words("add min max"), words("v2 v4 v8")),
        "f16x2": (words("add min max"), words("v2 v4")),
        "bf16x2": (words("add min max"), words("v2 v4")),
    }
)

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


def check_access(q: Qualified) -> None:
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
    check_vector(q)


def _check_exclusions(q: Qualified) -> None:
    """What a memory order excludes."""
    opcode, sem = q.form.opcode, q.get("sem")
    for spelling, group, why in EXCLUDES:
        if spelling in (sem, q.get("mmio")) and group in q.chosen:
            message = f"`{opcode}.{spelling}` takes no {named(q.form, group)[0]}: `.{q.chosen[group]}`"
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


def check_vector(q: Qualified) -> None:
    """At most 16 bytes; 32 in .global memory since PTX ISA 8.8 (9.7.10.8)."""
    if "vec" not in q.chosen:
        return
    vec, typ = q.chosen["vec"], q.types[0]
    size = q.count * typ.bytes
    if size <= _VECTOR_BYTES and vec != "v8":
        return
    shown_ = f"`{q.form.opcode}.{vec}.{typ.name}`"
    if (vec, typ.bits) not in (("v8", 32), ("v4", 64)) or q.form.opcode == "ldu" or q.form.opcode == "st.async":
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


def check_atomic(q: Qualified) -> None:
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


def check_multimem(q: Qualified) -> None:
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
