"""Where the lanes of a warp find the rows that ``ldmatrix`` and ``stmatrix`` name (PTX ISA 9.7.15.4.15, .16).

The eight rows of a matrix are named by eight lanes, and each row is held by four: which bytes a lane accesses follows
from the addresses of others, whether these run or not. The launch has to decide them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxmm.formats.modules.evaluate import Generic, Known
from ptxmm.formats.modules.flow import Flow
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.propagate import Node, Propagation
from ptxmm.ptx import ops
from ptxmm.ptx.spelling import refuse

Rows = Mapping[Node, Known | None]
"""For each of these instructions that a lane comes to the register that names its row, if that is known."""

Lanes = Callable[[int], Rows | None]
"""Those of each lane of a warp; None if the warp has no such lane."""

_SIDE = 8
_HOLD = 4


def rows(code: Code, flow: Flow, known: Mapping[str, Known], variables: Mapping[str, Object]) -> Rows:
    """The rows that a thread names in which the registers ``known`` have these values at the start."""
    analysis = Propagation(code, flow, known, variables)
    analysis.run()
    found: dict[Node, Known | None] = {}
    for node, environment in analysis.entry.items():
        op = code.body[node[0]] if node[0] < len(code.body) else None
        if isinstance(op, ops.LoadMatrix | ops.StoreMatrix):
            found[node] = analysis.value(environment, op.address.base)
    return found


def fragments(
    op: ops.LoadMatrix | ops.StoreMatrix, node: Node, lane: int, lanes: Lanes, variables: Mapping[str, Object]
) -> tuple[ops.Address, ...]:
    """What ``lane`` accesses when its warp executes ``op`` at ``node``: of each matrix two elements of the row that it
    holds a part of, or with ``.trans`` one of each of two rows.

    Raises ``PtxmmError`` (kind ``unsupported``) where the launch does not decide a row.
    """
    line, part = divmod(lane, _HOLD)
    size = ops.fragment_bytes(op)
    held = [(2 * part, size * line), (2 * part + 1, size * line)] if op.transposed else [(line, size * part)]
    count = len(op.dst if isinstance(op, ops.LoadMatrix) else op.values)
    return tuple(
        ops.Address(_row(op, node, _SIDE * matrix + row, lanes, variables), inside)
        for matrix in range(count)
        for row, inside in held
    )


def _row(
    op: ops.LoadMatrix | ops.StoreMatrix, node: Node, lane: int, lanes: Lanes, variables: Mapping[str, Object]
) -> ops.Sym:
    """The row that ``lane`` names."""
    found = lanes(lane)
    if found is None or node not in found:
        why = "there is no such lane" if found is None else "that does not execute it with this one"
        raise refuse(op, f"lane {lane} of the warp names a row of it, but {why}")
    value = found[node]
    place = value.place if isinstance(value, Generic) else value
    if not isinstance(place, ops.Sym):
        raise refuse(op, f"lane {lane} of the warp names a row of it, and no launch decides where that is")
    item, start = variables[place.name], place.offset + op.address.offset
    size = ops.MATRIX_ROW_BYTES
    if item.space != "shared" or item.aligned % size or start % size or not 0 <= start <= item.size - size:
        where = f"{place.name}+{start}"
        raise refuse(op, f"lane {lane} of the warp names the row {where}, which is not known to be {size} aligned "
                           f"bytes of shared memory")  # fmt: skip
    return ops.Sym(place.name, start)
