"""Rows of the asynchronous copies (PTX ISA 9.7.10.24, 9.7.14.15.15)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.basic import U32
from ptxmm.ptx.qualified import Form, Names, Qualified, at, dotted
from ptxmm.ptx.tables.common import guard, made, source, source_predicate, without_policy
from ptxmm.ptx.tables.form import COMPLETE_TX, HINT, PREFETCH, SHARED_CTA, SM80, SM90, SM100, V86, words

_DIMENSIONS = words("1d 2d 3d 4d 5d")
_MULTICAST = {"multicast": ("multicast::cluster",)}
_COMPLETION = {"completion": (COMPLETE_TX, "bulk_group")}
_DIRECTION = {"dst": words("shared::cluster global shared::cta"), "src": words("global shared::cta")}
_TO_CTA = {V86: f"shared::cta+global+{COMPLETE_TX}"}

# The legal types of cp.reduce.async.bulk by destination and operation (the table of 9.7.10.24.7).
_HALVES = words("f16 bf16")
BULK_REDUCTIONS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("shared::cluster", "add"): words("u32 s32 u64"),
        **{("shared::cluster", op): words("u32 s32") for op in ("min", "max")},
        **{("shared::cluster", op): ("u32",) for op in ("inc", "dec")},
        **{("shared::cluster", op): ("b32",) for op in ("and", "or", "xor")},
        ("global", "add"): (*words("u32 s32 u64 f32 f64"), *_HALVES),
        **{("global", op): (*words("u32 s32 u64 s64"), *_HALVES) for op in ("min", "max")},
        **{("global", op): ("u32",) for op in ("inc", "dec")},
        **{("global", op): words("b32 b64") for op in ("and", "or", "xor")},
    }
)
_OPERATIONS = words("and or xor add inc dec min max")
_TYPES = words("b32 u32 s32 b64 u64 s64 f16 bf16 f32 f64")

# Directions (.dst, .src) and how their copies complete (9.7.10.24.6 and .9).
BULK_DIRECTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("shared::cluster", "global"): COMPLETE_TX,
        ("shared::cta", "global"): COMPLETE_TX,
        ("shared::cluster", "shared::cta"): COMPLETE_TX,
        ("global", "shared::cta"): "bulk_group",
    }
)
REDUCTION_DIRECTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("shared::cluster", "shared::cta"): COMPLETE_TX, ("global", "shared::cta"): "bulk_group"}
)
TENSOR_DIRECTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("shared::cluster", "global"): COMPLETE_TX,
        ("shared::cta", "global"): COMPLETE_TX,
        ("global", "shared::cta"): "bulk_group",
    }
)


_U16 = Type("u", 16)
_SIZES = (4, 8, 16)
_GROUPS = range(1 << 31)
_Kind = Literal["cp.async", "bulk", "wgmma"]


def _copy_async(q: Qualified, names: Names) -> Op:
    dst, src, size, *fill = without_policy(q, names, 3, 4)
    if q.chosen["cop"] == "cg":
        number = operands.constant_of(size, "the size of `cp.async.cg`", (16,), "16")
    else:
        number = operands.constant_of(size, "the size of `cp.async.ca`", _SIZES, "4, 8 or 16")
    source_size: ops.Operand | None = None
    ignore: ops.Reg | None = None
    negated = False
    if fill:
        item = fill[0]
        if isinstance(item, syntax.Negated) or (isinstance(item, syntax.Name) and item.name in names.predicates):
            ignore, negated = source_predicate(names, item)
        else:
            source_size = operands.value(q, names, item, U32)
            if isinstance(source_size, ops.Imm) and not 0 <= source_size.value <= number:
                raise at(item.span, f"the bytes read are 0 to {number}, not {source_size.value}")
    return ops.CopyAsync(
        operands.address(q, names, dst), operands.address(q, names, src), number, source_size, ignore, negated,
        source(q), guard(q, names),
    )  # fmt: skip


def _kind(q: Qualified) -> _Kind:
    if q.form.opcode.startswith("wgmma"):
        return "wgmma"
    return "bulk" if "bulk" in q.form.opcode.split(".") else "cp.async"


def commit(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.AsyncCommit(_kind(q), source(q), guard(q, names))


def wait(q: Qualified, names: Names) -> Op:
    count = len(q.form.slots)
    operands.check_count(q, count, count)
    pending: int | None = None
    if count:
        item = q.instruction.operands[0]
        pending = operands.constant_of(item, "the number of pending groups", _GROUPS, "0 or more")
    return ops.AsyncWait(_kind(q), pending, "read" in q.chosen, source(q), guard(q, names))


def _bulk_size(q: Qualified, names: Names, item: syntax.Operand) -> ops.Operand:
    size = operands.value(q, names, item, U32)
    if isinstance(size, ops.Imm) and (size.value < 0 or size.value % 16 or size.value >= 1 << 32):
        raise at(item.span, f"the size of a bulk copy is a multiple of 16 bytes, not {size.value}")
    return size


def _bulk_copy(q: Qualified, names: Names) -> Op:
    barrier, multicast = q.chosen["completion"] != "bulk_group", "multicast" in q.chosen
    masked = "cp_mask" in q.chosen
    count = 3 + barrier + multicast + masked
    if masked:
        slots, hint = ("[dst]", "[src]", "size", "byteMask"), "hint" in q.chosen
        operands.check_count(q, count + hint, count + hint, slots)
    dst, src, size, *more = without_policy(q, names, count, count, after=int(masked))
    return ops.BulkCopy(
        dst=operands.address(q, names, dst),
        dst_space=q.chosen["dst"],
        src=operands.address(q, names, src),
        src_space=q.chosen["src"],
        size=_bulk_size(q, names, size),
        mbarrier=operands.address(q, names, more[0]) if barrier else None,
        mask=_mask(q, names, more[1]) if multicast else None,
        reduction=q.get("op"),
        type=q.types[0] if q.types else None,
        tensormap=None,
        coordinates=(),
        source=source(q),
        guard=guard(q, names),
        byte_mask=operands.value(q, names, more[-1], _U16) if masked else None,
    )


def _mask(q: Qualified, names: Names, item: syntax.Operand) -> ops.Operand:
    mask = operands.value(q, names, item, _U16)
    if isinstance(mask, ops.Imm) and not 0 <= mask.value < 1 << 16:
        raise at(item.span, f"the mask of CTAs has 16 bits: {mask.value}")
    return mask


def _tensor_copy(q: Qualified, names: Names) -> Op:
    """A tensor copy from or to the global memory that a tensor map describes (9.7.10.24.9, .10)."""
    dim = int(q.chosen["dim"][0])
    reads, multicast = q.chosen["src"] == "global", "multicast" in q.chosen
    im2col = reads and q.get("load_mode") == "im2col"
    count = 2 + reads + im2col + multicast
    first, second, *more = without_policy(q, names, count, count)
    tensor, shared = (second, first) if reads else (first, second)
    tensormap, coordinates = operands.tensor_address(q, names, tensor, dim)
    near = operands.address(q, names, shared)
    return ops.BulkCopy(
        dst=near if reads else None,
        dst_space=q.chosen["dst"],
        src=None if reads else near,
        src_space=q.chosen["src"],
        size=None,
        mbarrier=operands.address(q, names, more[0]) if reads else None,
        mask=_mask(q, names, more[-1]) if multicast else None,
        reduction=q.get("op"),
        type=None,
        tensormap=tensormap,
        coordinates=coordinates,
        source=source(q),
        guard=guard(q, names),
        load_mode=q.get("load_mode") or "tile",
        offsets=_offsets(q, names, more[1], dim) if im2col else (),
    )


def _offsets(q: Qualified, names: Names, item: syntax.Operand, dim: int) -> tuple[ops.Operand, ...]:
    """The offsets of ``.im2col``: two fewer than dimensions, of type .u16."""
    found = operands.vector(item, dim - 2, f"`.{dim}d.im2col`")
    return tuple(operands.value(q, names, offset, _U16) for offset in found)


def _bulk_prefetch(q: Qualified, names: Names) -> Op:
    place, size = without_policy(q, names, 2, 2)
    operands.address(q, names, place)
    _bulk_size(q, names, size)
    return ops.Nothing(None, None, source(q), guard(q, names))


def _tensor_prefetch(q: Qualified, names: Names) -> Op:
    dim, im2col = int(q.chosen["dim"][0]), q.get("load_mode") == "im2col"
    tensor, *more = without_policy(q, names, 1 + im2col, 1 + im2col)
    operands.tensor_address(q, names, tensor, dim)
    if im2col:
        _offsets(q, names, more[0], dim)
    return ops.Nothing(None, None, source(q), guard(q, names))


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


FORMS = (
    Form("cp.async", _copy_async,
         {"cop": words("ca cg"), "dst": SHARED_CTA, "src": ("global",), "hint": HINT, "prefetch": PREFETCH},
         words("[dst] [src] size fill? policy?"), SM80, ("cop", "dst", "src")),
    Form("cp.async.commit_group", commit, {}, (), SM80),
    Form("cp.async.wait_group", wait, {}, ("pending",), SM80),
    Form("cp.async.wait_all", wait, {}, (), SM80),
    Form("cp.async.mbarrier.arrive", made(ops.CopyAsyncArrive),
         {"noinc": ("noinc",), "space": SHARED_CTA, "type": ("b64",)}, ("[mbar]",), SM80, ("type",)),
    Form("cp.async.bulk", _bulk_copy,
         {**_DIRECTION, **_COMPLETION, **_MULTICAST, "hint": HINT, "cp_mask": ("cp_mask",)},
         words("[dst] [src] size [mbar]? ctas? policy? byteMask?"), SM90, ("dst", "src", "completion"),
         rule=_check_bulk, newer={**_TO_CTA, SM100: "cp_mask"}),
    Form("cp.reduce.async.bulk", _bulk_copy,
         {"dst": words("shared::cluster global"), "src": ("shared::cta",), **_COMPLETION, "hint": HINT,
          "op": _OPERATIONS, "noftz": ("noftz",), "type": _TYPES},
         words("[dst] [src] size [mbar]? policy?"), SM90, ("dst", "src", "completion", "op", "type"), rule=_check_bulk),
    Form("cp.async.bulk.prefetch", _bulk_prefetch, {"level": ("L2",), "src": ("global",), "hint": HINT},
         words("[src] size policy?"), SM90, ("level", "src")),
    Form("cp.async.bulk.tensor", _tensor_copy,
         {"dim": _DIMENSIONS, **_DIRECTION, "load_mode": words("tile im2col im2col_no_offs"), **_COMPLETION,
          **_MULTICAST, "hint": HINT},
         words("[dst] [src] [mbar]? offsets? ctas? policy?"), SM90, ("dim", "dst", "src", "completion"),
         later=dict.fromkeys(
             words("tile::gather4 tile::scatter4 im2col::w im2col::w::128 cta_group::1 cta_group::2"), V86),
         rule=_check_tensor, newer=_TO_CTA),
    Form("cp.reduce.async.bulk.tensor", _tensor_copy,
         {"dim": _DIMENSIONS, "dst": ("global",), "src": ("shared::cta",), "op": _OPERATIONS,
          "load_mode": words("tile im2col_no_offs"), "completion": ("bulk_group",), "hint": HINT},
         words("[dst] [src] policy?"), SM90, ("dim", "dst", "src", "op", "completion"), rule=_check_tensor),
    Form("cp.async.bulk.prefetch.tensor", _tensor_prefetch,
         {"dim": _DIMENSIONS, "level": ("L2",), "src": ("global",), "load_mode": words("tile im2col"), "hint": HINT},
         words("[src] offsets? policy?"), SM90, ("dim", "level", "src"),
         later=dict.fromkeys(words("tile::gather4 im2col::w im2col::w::128"), V86), rule=_check_tensor),
    Form("cp.async.bulk.commit_group", commit, {}, (), SM90),
    Form("cp.async.bulk.wait_group", wait, {"read": ("read",)}, ("pending",), SM90),
)  # fmt: skip
