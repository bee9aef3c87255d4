"""Checks of tensor copies and of changes of tensor maps, as far as the text of a test tells (5.5, 9.7.10.25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.program.naming import error
from ptxmm.program.shared.tensors import ELEMENT_TYPES, MAX_RANK, REDUCIBLE, element_type
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx.ops import BulkCopy, Imm, Op, Sym, TensormapCopyFence, TensormapReplace

_SHAPE_FIELDS = ("rank", "elemtype", "box_dim", "element_stride")
_LAYOUT_FIELDS = {
    "interleave_layout": "interleaved tensors are",
    "swizzle_mode": "swizzled boxes are",
    "fill_mode": "filling with OOB-NaN is",
}
_CHANGING_TYPES = {8: ".f32.ftz", 11: ".tf32", 12: ".tf32.ftz"}


def mark_fixed(objects: Mapping[str, MemoryObject], bodies: Iterable[Sequence[Op]]) -> dict[str, MemoryObject]:
    """``objects`` with the tensor maps marked whose boxes may come to have other sizes than declared."""
    changes = any(
        isinstance(op, TensormapCopyFence) or (isinstance(op, TensormapReplace) and op.field in _SHAPE_FIELDS)
        for body in bodies
        for op in body
    )
    if not changes:
        return dict(objects)
    return {
        key: item if item.tensormap is None else replace(item, tensormap=replace(item.tensormap, fixed=False))
        for key, item in objects.items()
    }


def check_tensors(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> None:
    """Refuse what is not modelled, and copies that do not fit the tensor map that they name.

    Raises ``PtxmmError`` (kind ``unsupported``: im2col, interleaved and swizzled layouts, filling with NaN, types that
    change values, a tensor map that nothing gives a value; kind ``type``: another rank, no such reduction).
    """
    copied = any(isinstance(op, TensormapCopyFence) for thread in threads for op in thread.body)
    for thread in threads:
        for op in thread.body:
            if isinstance(op, TensormapReplace):
                _check_field(op)
            elif isinstance(op, BulkCopy) and op.tensormap is not None:
                _check_copy(op, op.tensormap.base, objects, copied)


def _check_field(op: TensormapReplace) -> None:
    """A value of Table 32 that would change what is copied in ways that are not modelled."""
    span = op.source.span
    if op.field == "global_stride" and op.ordinal == MAX_RANK - 1:
        raise error("a tensor has at most 4 strides, with the ordinals 0 to 3", span, kind="type")
    if not isinstance(op.value, Imm):
        return
    if op.field in _LAYOUT_FIELDS and op.value.value:
        message = f"{_LAYOUT_FIELDS[op.field]} not supported: the field .{op.field} can only be 0"
        raise error(message, span, kind="unsupported")
    if op.field == "elemtype" and op.value.value not in ELEMENT_TYPES:
        name = _CHANGING_TYPES[op.value.value]
        hint = "copies of them change values; those of .f32 (7) do not"
        raise error(f"tensors of {name} are not supported", span, kind="unsupported", hint=hint)


def _check_copy(op: BulkCopy, base: object, objects: Mapping[str, MemoryObject], copied: bool) -> None:
    span = op.source.span
    if op.load_mode != "tile":
        hint = "tiled tensor copies are: leave the mode out, or write .tile"
        raise error(f"tensor copies in the mode .{op.load_mode} are not supported", span, kind="unsupported", hint=hint)
    if not isinstance(base, Sym):
        return
    item = objects[base.name]
    if item.tensormap is None:
        if not copied:
            hint = f"declare it: `.global .align 64 .b8 {item.name}[128] = tensormap(g, u32, 4);`"
            message = f"what box the tensor map {item.name} describes is not known"
            raise error(message, span, kind="unsupported", hint=hint)
        return
    if not item.tensormap.fixed:
        return
    rank, type_ = len(item.tensormap.box), element_type(item.tensormap.type)
    if rank != len(op.coordinates):
        message = f"{item.name} describes a tensor of {rank} dimensions, but this copy has {len(op.coordinates)}"
        raise error(message, span, kind="type", hint=f"write .{rank}d")
    if op.reduction is not None and type_ is not None and type_.name not in REDUCIBLE[op.reduction]:
        message = f"there is no reduction .{op.reduction} of a tensor of .{item.tensormap.type.name}"
        hint = f"element types of .{op.reduction}: {', '.join(REDUCIBLE[op.reduction])}"
        raise error(message, span, kind="type", hint=hint)
