"""Matrices that products and copies find by descriptors: of ``wgmma`` (PTX ISA 9.7.16.5.1.2), and of ``tcgen05``
(9.7.16.4.1 and 9.7.16.4.2 of PTX ISA 9.0)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ptxmm.program.shared.descriptors import ADDRESSES, decoded, pieces
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.state import State, Stopped
from ptxmm.whole.order.trace import ASYNC, READ

_U32 = ops.Type("u", 32)
_COPIED = {"128x256b": (128, 2, 8), "128x128b": (128, 1, 4)}
_TYPES = {
    "kind::f16": {0, 1}, "kind::tf32": {2}, "kind::f8f6f4": {0, 1}, "kind::i8": {0, 1},
}  # fmt: skip
"""Of each kind the types of A and B of which a row of K has 32 bytes without padding (table 42)."""


class Shape(Struct, frozen=True):
    """Of a product: ``m`` and ``n``; of A and B how many lines they have, whether they are transposed, and how many
    chunks of 16 bytes they are deep; ``disabled``: the mask of lanes that it leaves as they are; ``depth``: the columns
    of an A in tensor memory."""

    m: int
    n: int
    a: tuple[int, bool, int]
    b: tuple[int, bool, int]
    disabled: int
    depth: int = 8

    def lanes(self, word: int, at: int, thread: int) -> list[int]:
        """The lanes of a matrix of ``m`` rows in tensor memory: all, or a half of those of each warp (layouts D and F,
        9.7.16.10.5)."""
        first, allowed = word >> 16, (0,) if self.m == 128 else (0, 16)
        if first not in allowed:
            message = f"a matrix of {self.m} rows at lane {first} (9.7.16.10.5 of PTX ISA 9.0)"
            raise Stopped("undefined", message, at, thread)
        if self.m == 128:
            return [*range(128)]
        return [32 * quarter + first + row for quarter in range(4) for row in range(16)]


def multiplied(state: State, op: ops.TensorProduct, at: int, thread: Numbers) -> Shape:
    """What the instruction descriptor says (9.7.16.4.2 of PTX ISA 9.0). Raises ``Stopped`` where that is not known or
    not followed."""
    one = int(thread[0])
    word = int(state.sure(state.operand(op.descriptor, _U32, thread), at, "the descriptor of this product", thread)[0])
    m, n = (word >> 24 & 31) << 4, (word >> 17 & 63) << 3
    step = 16 if op.kind == "kind::i8" and n > 32 else 8
    if m not in (64, 128) or not 8 <= n <= 256 or n % step:
        message = f"a product of the shape {m}x{n}, which there is not (9.7.16.2.1 of PTX ISA 9.0)"
        raise Stopped("undefined", message, at, one)
    if word >> 2 & 1:
        raise Stopped("undefined", "a product of a sparse matrix without .sp", at, one)
    if not {word >> 7 & 7, word >> 10 & 7} <= _TYPES[op.kind]:
        raise Stopped("unsupported", "a product of elements of these types is not followed yet", at, one)
    transposed = bool(word >> 15 & 1), bool(word >> 16 & 1)
    if any(transposed) and op.kind != "kind::f16":
        raise Stopped("unsupported", "a transposed matrix of other elements than 16 bits is not followed yet", at, one)
    disabled = 0
    for number, operand in enumerate(op.disabled):
        lanes = state.sure(state.operand(operand, _U32, thread), at, "the mask of lanes of this product", thread)
        disabled |= int(lanes[0]) << 32 * number
    return Shape(m, n, (m, transposed[0], 2), (n, transposed[1], 2), disabled)


def copied(op: ops.TensorCopy, at: int) -> tuple[int, int, int]:
    """How many lines and chunks ``tcgen05.cp`` reads, and how many columns it writes in each lane."""
    if op.shape not in _COPIED:
        raise Stopped("unsupported", f"`tcgen05.cp.{op.shape}` is not followed in a whole launch yet", at)
    return _COPIED[op.shape]


def read_matrix(
    machine: Accessing, word: int, shape: tuple[int, bool, int], at: int, thread: Numbers, agent: Numbers
) -> Numbers:
    """An agent reads the matrix of a descriptor of tcgen05, ``shape`` as of ``Shape``; the places of the bytes."""
    if word >> 46 & 7 != 1 or word >> 53 & 0xFF:
        message = "a matrix descriptor that has not its constant bits (9.7.16.4.1 of PTX ISA 9.0)"
        raise Stopped("undefined", message, at, int(thread[0]))
    if word >> 52 & 1 or word >> 61 & 1:
        message = "this swizzling mode or stride of a matrix descriptor is not followed yet"
        raise Stopped("unsupported", message, at, int(thread[0]))
    lines, transposed, chunks = shape
    return read(machine, word, (lines, transposed, 1), chunks, at, thread, agent)


def read(
    machine: Accessing, word: int, shape: tuple[int, bool, int], chunks: int, at: int, thread: Numbers, agent: Numbers
) -> Numbers:
    """An agent reads the matrix of shared memory that a descriptor names, with the fields of ``wgmma``; the places of
    its bytes. ``shape``: as of ``descriptors.described``, so many ``chunks`` deep in each step of K.
    """
    matrix = decoded(word)
    shared = ((name, item) for name, item in machine.kernel.variables.items() if item.space == "shared")
    if any(machine.memory.symbols.get(name, 0) + item.size > ADDRESSES for name, item in shared):
        raise Stopped("unsupported", "shared memory beyond the addresses of descriptors is not followed yet", at)
    if matrix.base:
        raise Stopped("unsupported", "a matrix with a base offset is not followed in a whole launch yet", at)
    if not shape[1] and 1 < matrix.span < chunks * shape[2]:
        message = "a matrix that is deeper than its swizzling pattern is not followed in a whole launch yet"
        raise Stopped("unsupported", message, at)
    sizes: dict[int, list[int]] = {}
    for start, size in pieces(matrix, *shape, chunks):
        sizes.setdefault(size, []).append(start)
    found = []
    for size, starts in sorted(sizes.items()):
        addresses, one = np.array(starts, np.uint64), np.repeat(thread[:1], len(starts))
        generic, _ = machine.memory.generic(addresses, "shared::cta", one)
        places = machine.memory.find(generic, size, one)[1]
        if (places < 0).any():
            raise Stopped("outside", "a matrix that is not in one variable of shared memory", at, int(thread[0]))
        machine.trace.add(at, READ, places, size, np.repeat(agent, len(places)), f"{ASYNC}.own")
        found.append(places)
    return np.concatenate(found)
