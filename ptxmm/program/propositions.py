"""Names in final conditions: from what was written to registers, memory elements and addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.program.condition import (
    AddressTerm,
    Comparison,
    IntegerTerm,
    MemoryTerm,
    Proposition,
    RegisterTerm,
    Term,
    comparison_type,
    mapped,
)
from ptxmm.program.fragments import fragments
from ptxmm.program.initial import number, real
from ptxmm.program.naming import address, at_path, check_window, did_you_mean, error, find_object
from ptxmm.program.source import AddressOf, Constant, NameTerm, RawProposition, RawTerm, Real
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx.ops import Type


class Names(Struct, frozen=True):
    """What a condition can name."""

    threads: Sequence[Thread]
    objects: Mapping[str, MemoryObject]
    indices: Mapping[str, int]


def names_of(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> Names:
    """The names of a test."""
    return Names(threads, objects, {t.name: i for i, t in enumerate(threads)})


def proposition(raw: RawProposition, names: Names) -> Proposition:
    """``raw`` with every name resolved.

    Raises ``PtxmmError`` of kind ``name`` for an unknown name and ``type`` for a constant that can never be equal.
    """
    return mapped(raw, lambda found: _comparison(found, names))


def term(raw: NameTerm, names: Names) -> RegisterTerm | MemoryTerm:
    """The register or memory element that ``raw`` names. Raises ``PtxmmError`` (kind ``name``)."""
    if raw.thread is not None:
        return _thread_term(raw, raw.thread, names)
    if raw.path is not None:
        found = at_path(names.objects, raw.name, raw.path)
        if len(found) != 1:
            written = f"{raw.path.text}:{raw.name}"
            keys = [o.key for o in names.objects.values() if o.owner is not None]
            if found:
                raise error(f"`{written}` names {len(found)} variables", raw.span, hint="name more levels")
            raise error(f"no variable is called `{written}`", raw.span, hint=did_you_mean(written, keys))
        return _element(raw, found[0])
    if raw.name not in names.objects and all(o.name != raw.name for o in names.objects.values()):
        raise _unknown(raw, names)
    return _element(raw, find_object(names.objects, raw.name, raw.span))


def _thread_term(raw: NameTerm, thread: str, names: Names) -> RegisterTerm | MemoryTerm:
    if thread not in names.indices:
        raise error(f"there is no thread `{thread}`", raw.span, hint=did_you_mean(thread, list(names.indices)))
    index = names.indices[thread]
    registers = names.threads[index].registers
    if raw.name in registers:
        if raw.index is not None:
            raise error(f"{thread}:{raw.name} is a register and has no elements", raw.span, kind="type")
        if raw.name in fragments(names.threads[index]):
            message = f"{thread}:{raw.name} holds a part of a matrix, and which one is unspecified"
            raise error(message, raw.span, kind="unsupported", hint="a condition can name what wmma.store writes")
        return RegisterTerm(index, raw.name, registers[raw.name])
    local = names.objects.get(f"{thread}:{raw.name}")
    if local is not None:
        return _element(raw, local)
    known = [f"{t.name}:{r}" for t in names.threads for r in t.registers]
    hint = did_you_mean(f"{thread}:{raw.name}", [k for k in known if k.startswith(f"{thread}:")] or known)
    raise error(f"{thread} has no register `{raw.name}`", raw.span, hint=hint)


def _unknown(raw: NameTerm, names: Names) -> PtxmmError:
    owners = [t.name for t in names.threads if raw.name in t.registers]
    if owners:
        hint: str | None = f"a register is written with its thread: {owners[0]}:{raw.name}"
    else:
        hint = did_you_mean(raw.name, [o.name for o in names.objects.values()])
    return error(f"no variable is called `{raw.name}`", raw.span, hint=hint)


def _element(raw: NameTerm, item: MemoryObject) -> MemoryTerm:
    """An alias stands for the memory of its variable."""
    if item.replicas:
        hint = f"name one of them: {', '.join(item.replicas)}"
        raise error(f"{item.name} is a multimem address of several locations", raw.span, kind="type", hint=hint)
    if raw.index is None and item.is_array:
        raise error(f"{item.name} is an array", raw.span, kind="type", hint=f"name an element: {item.name}[0]")
    if raw.index is not None and not item.is_array:
        raise error(f"{item.name} is not an array", raw.span, kind="type")
    index = raw.index or 0
    if not 0 <= index < item.count:
        message = f"{item.name}[{index}] is outside the array"
        raise error(message, raw.span, kind="type", hint=f"{item.name} has {item.count} elements")
    return MemoryTerm(item.physical, index, item.type)


def _comparison(raw: Comparison[RawTerm], names: Names) -> Comparison[Term]:
    parts = (raw.left, raw.right)
    left, right = (_term(part, names) for part in parts)
    type_ = comparison_type(Comparison(raw.op, left, right))
    if type_ is None:
        for part in parts:
            if isinstance(part, Real):
                raise error(f"{part.text} is compared with no register or location", part.span, kind="type")
        return Comparison(raw.op, left, right)
    if type_.kind == "f" and raw.op not in ("==", "!="):
        span = next(part.span for part in parts if isinstance(part, NameTerm))
        message = f"the order of .{type_.name} values is not supported in conditions"
        raise error(message, span, kind="unsupported", hint="compare with == or !=, which compare the bits")
    for part, term in zip(parts, (left, right), strict=True):
        if type_.kind == "f":
            _check_bits(part, term, type_)
        else:
            _check_integer(part, type_)
    return Comparison(raw.op, *(_number(p, t, type_, names.objects) for p, t in zip(parts, (left, right), strict=True)))


def _check_integer(part: RawTerm, type_: Type) -> None:
    """Refuse what no value of ``type_`` is equal to."""
    if isinstance(part, AddressOf) and type_.bits not in (32, 64):
        raise error(f"an address has 64 bits and is compared with .{type_.name}", part.span, kind="type")
    if isinstance(part, Constant) and not -(1 << (type_.bits - 1)) <= part.value < 1 << type_.bits:
        message = f"{part.value} does not fit in the {type_.bits} bits it is compared with"
        raise error(message, part.span, kind="type")


def _check_bits(part: RawTerm, term: Term, type_: Type) -> None:
    """Refuse what has no bits to compare with those of a floating-point ``type_``."""
    if isinstance(part, AddressOf):
        raise error(f"an address is compared with .{type_.name}", part.span, kind="type")
    if isinstance(term, RegisterTerm | MemoryTerm) and term.type.bits != type_.bits:
        raise error(f"this has {term.type.bits} bits and is compared with .{type_.name}", part.span, kind="type")


def _number(raw: RawTerm, term: Term, type_: Type, objects: Mapping[str, MemoryObject]) -> Term:
    """``term``, or the value in ``type_`` of the floating-point constant or the number that ``raw`` is."""
    match raw:
        case Real():
            return IntegerTerm(real(raw, type_))
        case Constant() if type_.kind == "f":
            return IntegerTerm(number(raw, type_))
        case AddressOf() if isinstance(term, AddressTerm) and type_.bits == 32:
            check_window(objects[term.key], raw.span)
            found = objects[term.key]
            return replace(term, address=found.window + term.offset, others=(found.mapped + term.offset,))
        case _:
            return term


def _term(raw: RawTerm, names: Names) -> Term:
    match raw:
        case Constant(value):
            return IntegerTerm(value)
        case Real():
            return IntegerTerm(0)  # its bits depend on what it is compared with
        case AddressOf(target, offset):
            item, value = address(raw, None, names.objects)
            step = 0 if target.index is None else target.index * item.type.bytes
            others = tuple(start + step + offset for start in (item.window, item.mapped) if start)
            return AddressTerm(item.key, step + offset, value, others)
        case NameTerm():
            return term(raw, names)
