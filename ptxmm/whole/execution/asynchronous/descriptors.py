"""Which bytes of shared memory the matrices of a warpgroup are in (PTX ISA 9.7.16.5.1.2).

A descriptor says where a matrix begins, how far apart its core matrices are, and how these are swizzled
(9.7.16.5.1.2.7). A core matrix has eight rows of 16 bytes. Here a *chunk* is such a row; of a matrix whose lines run
along K (not transposed) a line has two chunks, 32 bytes. Of one that is transposed a line runs along M or N.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from msgspec import Struct

from ptxmm.whole.arrays import Numbers

CHUNK = 16
_ROWS, _DEPTH = 8, 2
_SPANS = {0: 1, 1: 8, 2: 4, 3: 2}
"""For each swizzling mode how many chunks its pattern has in a row."""
_ENCODED = 0x3FFF


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


@cache
def chunks(matrix: Matrix, lines: int, depth: int, transposed: bool) -> Numbers:
    """The addresses in shared memory of the chunks that a product reads, in ascending order.

    ``lines``: the size M of A or N of B; ``depth``: that in the dimension K, in elements of 16 bits if the matrix is
    ``transposed``, where K has rows, and in chunks else."""
    if not transposed:
        line, chunk = np.divmod(np.arange(lines * depth), depth)
        step = matrix.leading if matrix.span == 1 else CHUNK
        offsets = line % _ROWS * CHUNK * matrix.span + line // _ROWS * matrix.stride + chunk * step
    else:
        chunk, row = np.divmod(np.arange(lines // _ROWS * depth), depth)
        far, deep = matrix.leading, matrix.stride
        if matrix.span == 1:
            far, deep = deep, far
        offsets = chunk % matrix.span * CHUNK + chunk // matrix.span * far
        offsets = offsets + row % _ROWS * CHUNK * matrix.span + row // _ROWS * deep
    addresses = matrix.start + offsets
    # The pattern permutes the chunks of a row by the number of the row, as both are in the address (9.7.16.5.1.2.6).
    swizzled = addresses ^ ((addresses >> 7 & matrix.span - 1) << 4)
    return np.unique(swizzled).astype(np.int64)


def runs(addresses: Numbers) -> list[tuple[Numbers, int]]:
    """Chunks in ascending order, adjacent ones together: where those of each size begin."""
    first = np.ones(len(addresses), np.bool_)
    first[1:] = np.diff(addresses) != CHUNK
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, len(addresses))) * CHUNK
    return [(addresses[starts[sizes == size]], size) for size in np.unique(sizes).tolist()]
