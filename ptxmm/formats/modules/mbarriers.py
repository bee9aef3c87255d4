"""Mbarriers in an array or a structure of shared memory, as variables of their own.

Kernels take tiles and mbarriers from one block of (dynamic) shared memory. In a test an mbarrier is a variable: its
content is opaque, and nothing else accesses its memory (PTX ISA 9.7.14.15.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from msgspec.structs import replace

from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.objects import Object
from ptxmm.program.accesses import touches
from ptxmm.program.shared.mbarriers import MBARRIER_BYTES, operands
from ptxmm.program.symbols import symbols
from ptxmm.ptx import ops

_B64 = ops.Type("b", 64)
_Places = dict[str, set[tuple[int, int]]]


def separated(
    variables: Mapping[str, Object], bodies: Sequence[Sequence[ops.Op]], launch: Launch
) -> tuple[dict[str, Object], list[tuple[ops.Op, ...]]]:
    """``variables`` and the threads' instructions with a variable ``NAME_OFFSET`` for each mbarrier in a variable that
    also holds data.

    That is done where all accesses to the variable name it and none of them touches an mbarrier: what a register could
    make of its address is not known. Where no access to shared memory goes by a register, such an address is compared
    at most. The rest is left as it is.
    """
    boxes = {
        item.name: prod(item.tensormap.box) * item.tensormap.type.bytes
        for item in launch.objects
        if item.tensormap is not None
    }
    barriers, others, escaped = _accessed([op for body in bodies for op in body], boxes)
    names: dict[tuple[str, int], str] = {}
    added = dict(variables)
    for name, places in barriers.items():
        item = variables.get(name)
        if item is None or item.space != "shared" or name in escaped or not _apart(places, others.get(name)):
            continue
        for start, _ in sorted(places):
            own = f"{name}_{start}"
            while own in added:
                own += "_"
            names[name, start] = own
            added[own] = Object(own, "shared", _B64, None, None, MBARRIER_BYTES, item.span)
    if not names:
        return dict(variables), [tuple(body) for body in bodies]
    return added, [tuple(_renamed(op, names) for op in body) for body in bodies]


def _accessed(body: Sequence[ops.Op], boxes: Mapping[str, int]) -> tuple[_Places, _Places, set[str]]:
    """Where mbarriers and where data are accessed by the names of variables, and those that are named otherwise too."""
    barriers: _Places = {}
    others: _Places = {}
    escaped: set[str] = set()
    mapped: set[tuple[str, int]] = set()
    converted: set[str] = set()
    by_register = False
    for op in body:
        named = symbols(op)
        if isinstance(op, ops.Mapa) and isinstance(op.value, ops.Sym):
            mapped.add((op.value.name, op.value.offset))
            named.remove(op.value.name)
        places = [(barriers, place, MBARRIER_BYTES) for place in operands(op)]
        for found, address, size in (*places, *((others, *other) for other in _others(op, boxes))):
            base = address.base
            if isinstance(base, ops.Sym) and size is not None and base.name in named:
                start = base.offset + address.offset
                found.setdefault(base.name, set()).add((start, start + size))
                named.remove(base.name)
        by_register = by_register or any(_by_register(touch) for touch in ops.touched(op))
        if not isinstance(op, ops.ConvertAddress):
            escaped.update(named)
        else:
            converted.update(named)
    if by_register:
        escaped |= converted
    escaped |= {name for name, start in mapped if (start, start + MBARRIER_BYTES) not in barriers.get(name, ())}
    return barriers, others, escaped


def _by_register(touch: ops.Touch) -> bool:
    """Whether a register has the address of what may be shared memory."""
    return not isinstance(touch.address.base, ops.Sym) and touch.space not in ("global", "const", "param", "local")


def _others(op: ops.Op, boxes: Mapping[str, int]) -> Iterator[tuple[ops.Address, int | None]]:
    """The addresses of data in ``op`` and how many bytes it accesses there, None where that is not known.

    ``boxes``: the bytes of a tensor copy by its tensor map.
    """
    if isinstance(op, ops.BulkCopy) and op.tensormap is not None:
        base = op.tensormap.base
        size = boxes.get(base.name) if isinstance(base, ops.Sym) else None
        op = replace(op, tensormap=None, size=None if size is None else ops.Imm(size))
    for touch in touches(op, {}):
        if touch.role != "mbarrier":
            yield touch.address, touch.size


def _apart(barriers: set[tuple[int, int]], others: set[tuple[int, int]] | None) -> bool:
    """Whether there are data, and no two places of ``barriers`` or of both overlap."""
    if not others or any(start % MBARRIER_BYTES for start, _ in barriers):
        return False
    return not any(low < end and start < high for start, end in barriers for low, high in others)


def _renamed(op: ops.Op, names: Mapping[tuple[str, int], str]) -> ops.Op:
    """``op`` with the names of mbarriers that are variables of their own."""
    if isinstance(op, ops.Mapa) and isinstance(op.value, ops.Sym):
        own = names.get((op.value.name, op.value.offset))
        return op if own is None else replace(op, value=ops.Sym(own))
    found = list(operands(op))
    if not found:
        return op
    changes: dict[str, Any] = {}
    for name in op.__struct_fields__:
        place = getattr(op, name)
        if any(place is one for one in found) and isinstance(place.base, ops.Sym):
            own = names.get((place.base.name, place.base.offset + place.offset))
            if own is not None:
                changes[name] = ops.Address(ops.Sym(own), 0)
    return replace(op, **changes) if changes else op
