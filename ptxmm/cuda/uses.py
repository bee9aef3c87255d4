"""How an instruction uses the operands of its ``asm`` statement: reads, writes, as an address, and of which type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from ptxmm.cuda.opcodes import address_spaces, writes_first
from ptxmm.ptx import syntax
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import Op, Type

_REFERENCE = re.compile(r"%\$(\d+)")


class Use(Struct, frozen=True):
    """Operand ``number`` at ``start`` to ``end`` of the template. ``reads`` and ``writes`` are None if that is not
    known here; ``type`` is the type that the instruction gives it, or None; ``space`` is the state space that it is
    an address of, ``unknown`` if that is open, None if it is no address."""

    number: int
    start: int
    end: int
    reads: bool | None
    writes: bool | None
    type: Type | None = None
    space: str | None = None


def uses_of(
    known: tuple[syntax.Instruction, Op | None] | None,
    opcode: str,
    qualifiers: tuple[str, ...],
    text: str,
    start: int,
) -> tuple[Use, ...]:
    """The uses of an instruction. ``known``: its syntax and its meaning if known; ``text`` is all of it, from
    ``start`` of the template."""
    if known is None:
        return tuple(Use(int(m[1]), start + m.start(), start + m.end(), None, None) for m in _REFERENCE.finditer(text))
    instruction, op = known
    memories = [operand for operand in instruction.operands if isinstance(operand, syntax.Memory)]
    spaces = dict(zip(map(id, memories), address_spaces(opcode, qualifiers, len(memories)), strict=False))
    found: list[Use] = []
    for slot, operand in enumerate(instruction.operands):
        accesses = _accesses(op, opcode, qualifiers, slot == 0 and not isinstance(operand, syntax.Memory))
        for name, address in _names(operand):
            number = _number(name)
            if number is None:
                continue
            at = start + name.span.column - 1
            place = (at, at + len(name.text))
            if address:
                found.append(Use(number, *place, True, False, None, spaces.get(id(operand)) or "unknown"))
            else:
                reads, writes, type_ = accesses(name.name)
                found.append(Use(number, *place, reads, writes, type_))
    seen = {(use.start, use.end) for use in found}
    for hit in _REFERENCE.finditer(text):  # guards, and constants of constraint n
        place = (start + hit.start(), start + hit.end())
        if place not in seen:
            found.append(Use(int(hit[1]), *place, True, False))
    return tuple(found)


def _accesses(
    op: Op | None, opcode: str, qualifiers: tuple[str, ...], destination: bool
) -> Callable[[str], tuple[bool | None, bool | None, Type | None]]:
    """For the name of a register in an operand whether that reads and whether it writes it, and in which type;
    ``destination``: it is the first one, and no address."""
    written = dict(definitions(op)) if op is not None else {}
    read = dict(uses(op)) if op is not None else {}
    first = writes_first(opcode, frozenset(qualifiers))
    writes = first if destination else False

    def accesses(name: str) -> tuple[bool | None, bool | None, Type | None]:
        reads = None if writes is None else not writes
        if writes and op is not None:
            reads = name in read and opcode == "wgmma"  # which accumulates
        elif writes and opcode in ("wgmma", "tcgen05", "mma"):
            reads = None
        return reads, writes, (written if writes else read).get(name)

    return accesses


def _number(name: syntax.Name) -> int | None:
    if name.percent and name.name.startswith("$"):
        digits = name.name[1:]
        return int(digits) if digits.isdecimal() else None
    return None


def _names(operand: syntax.Operand) -> Iterator[tuple[syntax.Name, bool]]:
    """The names in ``operand``, and whether each is the base of an address."""
    match operand:
        case syntax.Name():
            yield operand, False
        case syntax.Sum(base) | syntax.AddressOf(base):
            yield base, False
        case syntax.Negated(name):
            yield name, False
        case syntax.Pair(first, second):
            yield first, False
            yield second, False
        case syntax.Vector(items):
            for item in items:
                yield from _names(item)
        case syntax.Memory(base):
            if isinstance(base, syntax.Name):
                yield base, True
            if operand.coordinates is not None:
                yield from _names(operand.coordinates)
        case _:
            return
