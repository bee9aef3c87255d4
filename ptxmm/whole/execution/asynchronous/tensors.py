"""What a bulk copy moves: bytes one after the other, or the box of a tensor map (PTX ISA 5.5, 9.7.10.24.6 to .10)."""

from __future__ import annotations

from math import prod

import numpy as np
from msgspec import Struct

from ptxmm.analysis.claims import BOUNDS
from ptxmm.program.shared.tensors import Tensor, decode
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.state import State, Stopped
from ptxmm.whole.execution.values import extended

_S32 = ops.Type("s", 32)
Spans = tuple[Numbers, Numbers]
"""Where bytes begin, and how many they are."""


class Transfer(Struct, frozen=True):
    """What a copy reads and what it writes, and which bytes go where: from ``frm`` to ``to``, so many. ``size``: how
    many bytes its completion counts; ``type``: that of its elements; ``map``: the tensor map that it reads, if any."""

    reads: Spans
    writes: Spans
    frm: Numbers
    to: Numbers
    sizes: Numbers
    size: int
    type: ops.Type | None
    map: int | None = None


def straight(frm: int, to: int, size: int, type_: ops.Type | None) -> Transfer:
    """``size`` bytes at one place that go to another one."""
    one, other, sizes = np.array([frm]), np.array([to]), np.array([size])
    return Transfer((one, sizes), (other, sizes), one, other, sizes, size, type_)


def described(state: State, op: ops.BulkCopy, place: int, at: int, thread: int) -> Tensor:
    """What the tensor map at a place of the arena says to a copy. Raises ``Stopped`` where that is not known, or has no
    meaning."""
    memory, end = state.memory, place + ops.TENSORMAP_BYTES
    if not memory.opaque[place:end].all() or memory.open[place:end].any():
        raise Stopped("unsupported", "a tensor map whose content is not known is not followed", at, thread)
    content = int.from_bytes(memory.bytes[place:end].tobytes(), "little")
    found = decode(content, len(op.coordinates), op.reduction)
    if isinstance(found, str):
        raise Stopped("undefined", found, at, thread)
    return found


def coordinates(state: State, op: ops.BulkCopy, at: int, thread: Numbers) -> list[int]:
    """Where the box begins in the tensor."""
    found = []
    for operand in op.coordinates:
        words = state.sure(state.operand(operand, _S32, thread), at, "a coordinate of this copy", thread)
        found.append(int(extended(words, 32, 64).view(np.int64)[0]))
    return found


def box(tensor: Tensor, begin: list[int]) -> tuple[Numbers, Numbers, Numbers]:
    """The elements of the box that lie in the tensor (5.5.3.3), adjacent ones together: where they begin in the box,
    their addresses, and how many bytes they have."""
    width = tensor.type.bytes
    inside: Flags = np.ones(prod(tensor.counts), np.bool_)
    addresses = np.full(len(inside), tensor.address, np.int64)
    left = np.arange(len(inside))
    for number, count in enumerate(tensor.counts):
        where = begin[number] + left % count * tensor.steps[number]
        inside &= (where >= 0) & (where < tensor.dims[number])
        addresses += where * (width, *tensor.strides)[number]
        left = left // count
    offsets, addresses = np.flatnonzero(inside) * width, addresses[inside]
    first = np.ones(len(offsets), np.bool_)
    first[1:] = (np.diff(offsets) != width) | (np.diff(addresses) != width)
    starts = np.flatnonzero(first)
    counts = np.diff(np.append(starts, len(offsets)))
    return offsets[starts], addresses[starts], counts * width


def tiled(state: State, op: ops.BulkCopy, place: int, near: int, at: int, thread: Numbers) -> Transfer:
    """The box of the tensor map at ``place`` that goes to or comes from the place ``near``."""
    assert op.load_mode == "tile"
    tensor = described(state, op, place, at, int(thread[0]))
    offsets, addresses, sizes = box(tensor, coordinates(state, op, at, thread))
    far = np.zeros(len(offsets), np.int64)
    for size in np.unique(sizes).tolist():
        here = sizes == size
        words = addresses[here].astype(np.uint64)
        far[here] = state.memory.find(words, size, np.repeat(thread, len(words)))[1]
    if (far < 0).any():
        raise Stopped("outside", "an access outside of all variables", at, int(thread[0]), BOUNDS)
    whole = np.array([near]), np.array([tensor.size])
    if op.dst is None:
        return Transfer(whole, (far, sizes), near + offsets, far, sizes, tensor.size, tensor.type, place)
    return Transfer((far, sizes), whole, far, near + offsets, sizes, tensor.size, tensor.type, place)
