"""Registers that name a variable: those that only ever hold the address of one, plus a constant."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.program.graph import makers
from ptxmm.program.shared.windows import in_window
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx.ops import Alu, Convert, ConvertAddress, Imm, Op, Reg, Sym

_WIDTHS = (32, 64)


def known_addresses(thread: Thread, objects: Mapping[str, MemoryObject]) -> dict[str, Sym]:
    """The registers of ``thread`` that only ever hold the address of one variable, with what they hold."""
    found: dict[str, Sym] = {}
    made_by = makers(thread.body)
    for name, value in thread.initial.items():
        bits = thread.registers[name].bits
        place = locate(value, objects)
        if name not in made_by and place is not None and bits in _WIDTHS:
            found[name] = place
    changed = True
    while changed:
        changed = False
        for name, pcs in made_by.items():
            if name not in found and len(pcs) == 1 and name not in thread.initial:
                made = _moved(thread.body[pcs[0]], found)
                if made is not None:
                    found[name], changed = made, True
    return found


def locate(address: int, objects: Mapping[str, MemoryObject]) -> Sym | None:
    """The variable that has a byte at an address, generic or in a window, with the offset there; None where it depends
    on the thread which one of several it is."""
    inside = in_window(objects, address)
    if inside is not None and inside[1] < inside[0].size:
        start = address - inside[1]
        several = sum(start in (item.window, item.mapped) for item in objects.values() if item.virtual == item.key)
        return Sym(inside[0].key, inside[1]) if several == 1 else None
    for item in objects.values():
        if item.virtual == item.key and item.address <= address < item.address + item.size:
            return Sym(item.key, address - item.address)
    return None


def _moved(op: Op, known: Mapping[str, Sym]) -> Sym | None:
    """The address that ``op`` computes of one in ``known``, or None."""
    if op.guard is not None:
        return None
    if isinstance(op, ConvertAddress) or (isinstance(op, Convert) and op.to.bits in _WIDTHS):
        # to an address in a window, or back from there
        if isinstance(op.value, Reg):
            return known.get(op.value.name)
        return op.value if isinstance(op.value, Sym) else None
    if not isinstance(op, Alu) or op.op not in ("mov", "add"):
        return None
    bases = [s if isinstance(s, Sym) else known.get(s.name) if isinstance(s, Reg) else None for s in op.sources]
    constants = [s.value for s in op.sources if isinstance(s, Imm)]
    places = [b for b in bases if b is not None]
    if len(places) != 1 or len(places) + len(constants) != len(op.sources):
        return None
    return Sym(places[0].name, places[0].offset + sum(constants))
