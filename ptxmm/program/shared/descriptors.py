"""Which bytes of shared memory the matrices of a warpgroup are in: facts of a descriptor (PTX ISA 9.7.16.5.1.2).

A descriptor says where a matrix begins, how far apart its core matrices are, and how these are swizzled
(9.7.16.5.1.2.7). A core matrix has eight rows of 16 bytes. Here a *chunk* is such a row; of a matrix whose lines run
along K (not transposed) a line has two chunks, 32 bytes. Of one that is transposed a line runs along M or N.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from ptxmm.ptx.ops import Wgmma

_CHUNK = 16
_ROWS, _DEPTH, _ELEMENTS = 8, 2, 16
"""The rows of a core matrix; how deep a matrix is in K: in chunks, and in elements of 16 bits (9.7.16.2)."""
_SPANS = {0: 1, 1: 8, 2: 4, 3: 2}
"""For each swizzling mode how many chunks its pattern has in a row."""
_ENCODED = 0x3FFF
ADDRESSES = 1 << 18
"""So many bytes of shared memory a descriptor can name (9.7.16.5.1.2.7)."""


class Matrix(Struct, frozen=True):
    """What a descriptor says: the address where the matrix begins, the leading dimension and the stride dimension byte
    offset, the base offset, and how many chunks a row of the swizzling pattern has (1: none)."""

    start: int
    leading: int
    stride: int
    base: int
    span: int


def decoded(descriptor: int) -> Matrix:
    """The fields of a descriptor; addresses and offsets are of 18 bits and multiples of 16 (9.7.16.5.1.2.7)."""
    start, leading, stride = (((descriptor >> at) & _ENCODED) << 4 for at in (0, 16, 32))
    return Matrix(start, leading, stride, descriptor >> 49 & 7, _SPANS[descriptor >> 62 & 3])


def described(op: Wgmma) -> list[tuple[int, bool, int]]:
    """For B, and for A if it has a descriptor: how many lines a matrix has, whether it is transposed, and how deep it
    is, in steps of 32 bytes of K (of 16 elements if it is transposed).

    imm-trans-b and imm-trans-a say whether, which only products of 16-bit elements have. Of a sparse A half of the
    elements is stored (9.7.16.6.4), and B is twice as deep as that."""
    scales, (m, n, _) = 2, op.shape
    transposed = [bool(flag) for flag in reversed(op.immediates[scales:])] or [False, False]
    second = n, transposed[0], 1 if op.metadata is None else 2
    return [second] if isinstance(op.a, tuple) else [second, (m, transposed[1], 1)]


@cache
def pieces(
    matrix: Matrix, lines: int, transposed: bool, depth: int = 1, chunks: int = _DEPTH
) -> tuple[tuple[int, int], ...]:
    """The bytes in shared memory that a product reads: where each piece begins and its size, in ascending order.

    ``lines``: the size M of A or N of B; ``depth``: see ``described``; what is not transposed is no deeper than a row
    of its swizzling pattern, and has so many ``chunks`` of each step. The base offset is not looked at."""
    found: list[tuple[int, int]] = []
    for address in sorted(set(_swizzled(matrix, lines, transposed, depth, chunks))):
        if found and sum(found[-1]) == address:
            found[-1] = (found[-1][0], found[-1][1] + _CHUNK)
        else:
            found.append((address, _CHUNK))
    return tuple(found)


def _swizzled(matrix: Matrix, lines: int, transposed: bool, depth: int, chunks: int) -> Iterator[int]:
    """A pattern permutes the chunks of a row by the number of the row, as both are in the address (9.7.16.5.1.2.6)."""
    for offset in _plain(matrix, lines, transposed, depth, chunks):
        address = matrix.start + offset
        yield address ^ ((address >> 7 & matrix.span - 1) << 4)


def _plain(matrix: Matrix, lines: int, transposed: bool, depth: int, chunks: int) -> Iterator[int]:
    row = _CHUNK * matrix.span
    if not transposed:
        step = matrix.leading if matrix.span == 1 else _CHUNK
        for line in range(lines):
            start = line // _ROWS * matrix.stride + line % _ROWS * row
            yield from (start + chunk * step for chunk in range(chunks * depth))
        return
    far, deep = (matrix.stride, matrix.leading) if matrix.span == 1 else (matrix.leading, matrix.stride)
    for chunk in range(lines // _ROWS):
        start = chunk // matrix.span * far + chunk % matrix.span * _CHUNK
        yield from (start + line // _ROWS * deep + line % _ROWS * row for line in range(_ELEMENTS * depth))
