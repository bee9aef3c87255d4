"""Matrices of a warp: loads and stores of their rows, and products (PTX ISA 9.7.15).

Lane i gives the address of row i % 8 of matrix i // 8. Of each row four lanes have four bytes each, or with ``.trans``
each lane has two bytes of two rows. What products give is not worked out.

Of ``wmma`` it is unspecified which lane accesses which element (9.7.15.3.1): here each lane accesses all of them, and
what one instruction stores does not race with itself. So what is ordered is so whoever makes the access.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.state import State, Stopped
from ptxmm.whole.execution.values import Value, unknown
from ptxmm.whole.order.trace import READ, WRITE

_ROWS, _EACH = 8, 4
_U32 = ops.Type("u", 32)


def check_together(state: State, at: int, threads: Numbers) -> None:
    """Raise ``Stopped`` where not all lanes of a warp come to an instruction together, as they have to."""
    here = set(threads.tolist())
    for warp in {state.warp(thread) for thread in here}:
        members = state.members(warp)
        if len(members) < WARP_SIZE or not here.issuperset(members):
            message = "lanes of a warp that come apart to an instruction for all of it are not followed yet"
            raise Stopped("unsupported", message, at, members[0])


def _fragments(
    machine: Accessing, op: ops.LoadMatrix | ops.StoreMatrix, count: int, at: int, threads: Numbers
) -> Numbers:
    """Where the bytes are that each lane has of each of ``count`` matrices: places by matrix, part and thread, of which
    there are two with ``.trans`` and one without it. ``threads`` are whole warps in ascending order."""
    lanes = threads % machine.size % WARP_SIZE
    naming = lanes < _ROWS * count
    rows = machine.places(op.address, op.space, ops.MATRIX_ROW_BYTES, at, threads[naming])
    rows = rows.reshape(-1, count, _ROWS)
    warp = np.arange(len(threads)) // WARP_SIZE
    which = np.arange(count)[:, None]
    if not op.transposed:
        found = rows[warp, which, lanes // _EACH] + _EACH * (lanes % _EACH)
        return found[:, None]
    parts = [rows[warp, which, 2 * (lanes % _EACH) + part] + 2 * (lanes // _EACH) for part in (0, 1)]
    return np.stack(parts, axis=1)


def load(machine: Accessing, op: ops.LoadMatrix, at: int, threads: Numbers) -> None:
    """``ldmatrix``."""
    check_together(machine, at, threads)
    places = _fragments(machine, op, len(op.dst), at, threads)
    size = _EACH // places.shape[1]
    for register, parts in zip(op.dst, places, strict=True):
        words, known = np.zeros(len(threads), np.uint64), np.ones(len(threads), np.bool_)
        for number, part in enumerate(parts):
            machine.trace.add(at, READ, part, size, threads)
            found = machine.memory.load(part, size)
            words |= found[0] << np.uint64(8 * size * number)
            known &= found[1] & ~machine.watched[part[:, None] + np.arange(size)].any(axis=1)
        if register is not None:
            machine.assign(register, threads, Value(words, known))


def store(machine: Accessing, op: ops.StoreMatrix, at: int, threads: Numbers) -> None:
    """``stmatrix``."""
    check_together(machine, at, threads)
    places = _fragments(machine, op, len(op.values), at, threads)
    size = _EACH // places.shape[1]
    for operand, parts in zip(op.values, places, strict=True):
        value = machine.operand(operand, _U32, threads)
        for number, part in enumerate(parts):
            machine.trace.add(at, WRITE, part, size, threads)
            machine.memory.store(part, size, value.words >> np.uint64(8 * size * number), value.known)
            machine.overwrite(part, size, at)


def load_tile(machine: Accessing, op: ops.WmmaLoad, at: int, threads: Numbers) -> None:
    """``wmma.load``."""
    for offset, size, places, lanes in _lines(machine, op, at, threads):
        machine.trace.add(at, READ, places + offset, size, lanes)
    for register in op.dst:
        machine.assign(register, threads, unknown(len(threads)))


def store_tile(machine: Accessing, op: ops.WmmaStore, at: int, threads: Numbers) -> None:
    """``wmma.store``."""
    for offset, size, places, lanes in _lines(machine, op, at, threads):
        for number in range(len(lanes)):
            machine.trace.same[machine.trace.count + number] = -1 - machine.trace.count - number // WARP_SIZE
        machine.trace.add(at, WRITE, places + offset, size, lanes)
        machine.memory.lose(places[::WARP_SIZE] + offset, size)
        machine.overwrite(places + offset, size, at)


def _lines(
    machine: Accessing, op: ops.WmmaLoad | ops.WmmaStore, at: int, threads: Numbers
) -> Iterator[tuple[int, int, Numbers, Numbers]]:
    """The lines of a matrix: the bytes from its begin, their number, where in the arena the matrices of some of
    ``threads`` begin, and these. Raises ``Stopped`` where lanes of a warp name different ones (9.7.15.3.3)."""
    check_together(machine, at, threads)
    tile = op.tile
    strides = np.full(len(threads), tile.length)
    if op.stride is not None:
        strides = machine.decided(op.stride, _U32, at, "the stride of a matrix", threads).astype(np.int64)
    for stride in np.unique(strides).tolist():
        here = threads[strides == stride]
        if stride < tile.length or stride * tile.bits % (8 * tile.fragment):
            least = f"no multiple of {tile.fragment} bytes, or less than the {tile.length} of a line"
            raise Stopped("undefined", f"a stride of {stride} elements, {least}", at, int(here[0]))
        places = machine.places(op.address, op.space, tile.span(stride), at, here, tile.fragment)
        if len(here) % WARP_SIZE or (places != np.repeat(places[::WARP_SIZE], WARP_SIZE)).any():
            raise Stopped("undefined", "lanes of a warp name different matrices", at, int(here[0]))
        for offset, size in tile.segments(stride):
            yield offset, size, places, here


def product(machine: Accessing, op: ops.Wmma, at: int, threads: Numbers) -> None:
    """``mma`` and ``wmma.mma``."""
    check_together(machine, at, threads)
    for register in op.dst:
        machine.assign(register, threads, unknown(len(threads)))
