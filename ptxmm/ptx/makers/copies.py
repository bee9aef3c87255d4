"""Asynchronous copies and their groups (PTX ISA 9.7.10.24, 9.7.14.15.15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.makers.common import U32, Maker, guard, source, source_predicate, without_policy
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.qualifiers import Qualified, at

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


def _copy_async_arrive(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    address = operands.address(q, names, q.instruction.operands[0])
    return ops.CopyAsyncArrive(address, "noinc" in q.chosen, source(q), guard(q, names), q.get("space"))


def _kind(q: Qualified) -> _Kind:
    if q.form.opcode.startswith("wgmma"):
        return "wgmma"
    return "bulk" if "bulk" in q.form.opcode.split(".") else "cp.async"


def _commit(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.AsyncCommit(_kind(q), source(q), guard(q, names))


def _wait(q: Qualified, names: Names) -> Op:
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


MAKERS: Mapping[str, Maker] = {
    "copy_async": _copy_async,
    "copy_async_arrive": _copy_async_arrive,
    "async_commit": _commit,
    "async_wait": _wait,
    "bulk_copy": _bulk_copy,
    "bulk_tensor": _tensor_copy,
    "bulk_prefetch": _bulk_prefetch,
    "tensor_prefetch": _tensor_prefetch,
}
