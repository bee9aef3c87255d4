"""What the instructions of PTX (and of the untyped dialect) mean: from a parsed instruction to a resolved one.

The table of legal instructions is ``table.py``; ``qualifiers.py`` checks the qualifiers; a row
makes the operation and fills in every default (memory order, scope, type).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx import syntax
from ptxmm.ptx.ops import Op, Reg, Source, Type
from ptxmm.ptx.ops.basic import B32, PREDICATE, S64
from ptxmm.ptx.ops.record import slots
from ptxmm.ptx.qualified import Names
from ptxmm.ptx.qualifiers import DEFAULT_ISA, check, is_typed, qualify
from ptxmm.ptx.versions import check_version, requires

__all__ = ["ADDRESS", "PREDICATE", "S64", "definitions", "is_typed", "predicate_names", "requires", "resolve", "uses"]

ADDRESS = Type("b", 64)
_WRITTEN = ("=", "|")


def resolve(
    instruction: syntax.Instruction,
    *,
    dialect: bool,
    variables: Container[str],
    labels: Mapping[str, int],
    isa: tuple[int, int] = DEFAULT_ISA,
    predicates: Container[str] = (),
    cuts: list[PtxmmError] | None = None,
) -> Op:
    """The operation of ``instruction`` with every default filled in (PTX ISA 9.7, semantics section 3).

    ``variables`` are the names of memory locations (all other names are registers); ``labels`` maps labels to
    indices of instructions; ``isa`` is the PTX ISA version, and what is later is refused. ``predicates`` are registers
    that are predicates: only ``cp.async`` needs them, to tell its ignore-src from its src-size (``predicate_names``).
    ``cuts``: takes what is to be told of integers that their types can't hold: ptxas takes their last bits and says
    nothing; None: they are errors.
    Raises ``PtxmmError`` of kind ``isa``, ``name``, ``type``, or ``unsupported`` for real PTX that is not supported.
    """
    q = qualify(instruction, dialect, isa)
    check(q)
    check_version(q, isa, predicates)
    return q.form.make(q, Names(variables, labels, predicates, cuts))


def predicate_names(instructions: Iterable[syntax.Instruction]) -> frozenset[str]:
    """The registers that the text of a thread shows to be predicates: guards, negated operands, and what
    instructions write as predicates. For ``resolve``."""
    found: set[str] = set()
    for instruction in instructions:
        if instruction.guard is not None:
            found.add(instruction.guard.name.name)
        for operand in instruction.operands:
            if isinstance(operand, syntax.Negated):
                found.add(operand.name.name)
            elif isinstance(operand, syntax.Pair):
                found.add(operand.second.name)
                if instruction.opcode == "setp":
                    found.add(operand.first.name)
        first = instruction.operands[0] if instruction.operands else None
        writes = instruction.opcode in ("setp", "isspacep", "testp") or any(
            name in ("pred", "test_wait", "try_wait") for name, _ in instruction.qualifiers
        )
        if writes and isinstance(first, syntax.Name):
            found.add(first.name)
    return frozenset(found)


def definitions(op: Op) -> list[tuple[str, Type]]:
    """The registers that ``op`` writes, each with the type of the value: the instruction type (``ld`` may write a
    wider register, PTX ISA 9.4.1), twice as wide for ``mul.wide`` and ``mad.wide``."""
    return [pair for slot in slots(op.roles) if slot.mark in _WRITTEN for pair in slot.registers(op)]


def uses(op: Op) -> list[tuple[str, Type]]:
    """The registers that ``op`` reads, each with the type it is read as; guards and addresses included."""
    found = [] if op.guard is None else [(op.guard.register, PREDICATE)]
    read = [slot for slot in slots(op.roles) if slot.mark not in _WRITTEN]
    addresses = ((slot.item(op), B32 if slot.end == "/" else ADDRESS) for slot in read if slot.mark == "[")
    found += ((place.base.name, typ) for place, typ in addresses if place is not None and isinstance(place.base, Reg))
    return found + [pair for slot in read if slot.mark != "[" for pair in slot.registers(op)]


def placeless(body: Iterable[Op]) -> tuple[Op, ...]:
    """Instructions without their places in the text."""
    nowhere = Source(Span(0, 0, 0), "")
    return tuple(replace(op, source=nowhere) for op in body)


def names_written(op: Op) -> list[str]:
    """The names of the registers that ``op`` writes."""
    return [name for name, _ in definitions(op)]


def names_read(op: Op) -> list[str]:
    """The names of the registers that ``op`` reads, its guard and those of addresses included."""
    return [name for name, _ in uses(op)]


_NO_PART = ("source", "guard", "dst", "complement")


def computation(op: Op) -> tuple[object, ...]:
    """What makes the result of ``op``, which computes with registers: its fields but for its place in the text, its
    guard and what it writes."""
    return tuple(getattr(op, field) for field in op.__struct_fields__ if field not in _NO_PART)
