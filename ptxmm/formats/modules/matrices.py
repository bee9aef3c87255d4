"""Where the matrices of warpgroups lie: the descriptors of ``wgmma`` in a launch (PTX ISA 9.7.16.5.1.2.7).

A kernel computes a descriptor from the address of a variable of shared memory, which no launch decides. So it is worked
out for a few ways to lay these variables out, with all that their alignment leaves open; what a product reads has to be
the same bytes of the same variables in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.formats.modules.evaluate import Known, Placed, evaluate
from ptxmm.formats.modules.objects import Object
from ptxmm.program.shared.descriptors import ADDRESSES, Matrix, decoded, described, pieces
from ptxmm.ptx import ops
from ptxmm.ptx.spelling import refuse

Layout = Mapping[str, int]
"""Where each variable of shared memory begins in its window."""

_PERIOD = 1024
"""A pattern of swizzled matrices repeats after so many bytes (9.7.16.5.1.2.6)."""
_COUNT = 3


def layouts(code: Sequence[ops.Op], variables: Mapping[str, Object]) -> tuple[Layout, ...]:
    """Ways to lay out what may hold matrices, none if ``code`` has no descriptors."""
    if not any(isinstance(op, ops.Wgmma) for op in code):
        return ()
    shared = [item for item in variables.values() if item.space == "shared"]
    return tuple(_layout(shared if turn != 1 else shared[::-1], turn) for turn in range(_COUNT))


def _layout(items: Sequence[Object], turn: int) -> Layout:
    """One after the other, each by the ``turn`` a multiple of its alignment behind the begin of a period."""
    found: dict[str, int] = {}
    end = _PERIOD
    for item in items:
        found[item.name] = -(-end // _PERIOD) * _PERIOD + turn * item.aligned % _PERIOD
        end = found[item.name] + item.size
    return found


def placed(
    op: ops.Op,
    value: Callable[[ops.Operand], Known | Placed | None],
    variables: Mapping[str, Object],
    ways: Sequence[Layout],
) -> dict[str, Placed]:
    """What ``op`` gives the registers that it writes if its operands are numbers in each of the layouts ``ways``, and
    some only there; nothing otherwise. ``value``: what is known of an operand."""
    open_ = False

    def number(operand: ops.Operand, turn: int) -> int | None:
        nonlocal open_
        item = value(operand)
        if isinstance(item, int):
            return item
        open_ = True
        if isinstance(item, tuple):
            return item[turn]
        return ways[turn][item.name] + item.offset if isinstance(item, ops.Sym) and item.name in ways[turn] else None

    results = [
        evaluate(op, lambda operand, turn=turn: number(operand, turn), variables) or {}  # type: ignore[misc]
        for turn in range(len(ways))
    ]
    if not open_:
        return {}
    found: dict[str, Placed] = {}
    for name in results[0]:
        numbers = [result.get(name) for result in results]
        if all(isinstance(item, int) for item in numbers):
            found[name] = tuple(item for item in numbers if isinstance(item, int))
    return found


def matrices(
    op: ops.Wgmma,
    value: Callable[[ops.Operand], Known | Placed | None],
    variables: Mapping[str, Object],
    ways: Sequence[Layout],
) -> ops.Wgmma:
    """``op`` with its descriptors decoded. Raises ``PtxmmError`` (kind ``unsupported``) where they can't be."""
    if op.metadata is not None:
        raise refuse(op, "products of sparse matrices are not followed in a kernel")
    given = [op.b] if isinstance(op.a, tuple) else [op.b, op.a]
    found: list[tuple[tuple[ops.Address, int], ...]] = []
    for descriptor, (lines, transposed, _) in zip(given, described(op), strict=True):
        item = value(descriptor)
        if not isinstance(item, tuple):
            message = "a matrix descriptor that the launch does not decide"
            raise refuse(op, message, "compute it from the address of a variable in shared memory (9.7.16.5.1.2.7)")
        sides = {
            _named(op, decoded(number), lines, transposed, variables, way)
            for number, way in zip(item, ways, strict=True)
        }
        if len(sides) > 1:
            message = "which bytes this matrix has depends on where its variable lies in shared memory"
            raise refuse(op, message, "align it to as many bytes as the pattern has (9.7.16.5.1.2.6), as 1024")
        found += sides
    zero = ops.Imm(0)
    return replace(op, a=op.a if isinstance(op.a, tuple) else zero, b=zero, matrices=tuple(found))


def _named(
    op: ops.Wgmma, matrix: Matrix, lines: int, transposed: bool, variables: Mapping[str, Object], way: Layout
) -> tuple[tuple[ops.Address, int], ...]:
    """The pieces of a matrix as places in variables."""
    if matrix.base:
        raise refuse(op, "a matrix with a base offset is not followed")
    if any(start + variables[name].size > ADDRESSES for name, start in way.items()):
        raise refuse(op, "shared memory beyond the addresses of descriptors is not followed")
    found: list[tuple[ops.Address, int]] = []
    for address, size in pieces(matrix, lines, transposed):
        name = _within(address, size, variables, way) or _within(matrix.start, 1, variables, way)
        if name is None:
            raise refuse(op, "a matrix that begins in no variable of shared memory")
        found.append((ops.Address(ops.Sym(name, 0), address - way[name]), size))
    return tuple(sorted(found, key=lambda piece: (piece[0].base.name, piece[0].offset)))  # type: ignore[union-attr]


def _within(address: int, size: int, variables: Mapping[str, Object], way: Layout) -> str | None:
    """The variable in which so many bytes lie."""
    inside = (n for n, start in way.items() if start <= address and address + size <= start + variables[n].size)
    return next(inside, None)
