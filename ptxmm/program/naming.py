"""Errors about names, and the objects that names stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxmm.errors import PtxmmError, Span
from ptxmm.program.source import LEVELS, AddressOf, Path
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Type


def error(message: str, span: Span, *, kind: str = "name", hint: str | None = None) -> PtxmmError:
    """An error of kind ``name`` (or another) at ``span``."""
    return PtxmmError(message, kind=kind, hint=hint).at(span)


def did_you_mean(name: str, known: Sequence[str]) -> str | None:
    """A hint that names what ``name`` may be a slip for."""
    from difflib import get_close_matches

    matches = get_close_matches(name[:60], known[:1000], 1)
    return f"did you mean `{matches[0]}`?" if matches else None


def find_object(objects: Mapping[str, MemoryObject], name: str, span: Span) -> MemoryObject:
    """The one object with this name as written; raises ``PtxmmError`` if there is none or several."""
    if name in objects and objects[name].name == name:
        # The key is the name itself where there is only one object.
        return objects[name]
    found = [item for item in objects.values() if item.name == name]
    if len(found) == 1:
        return found[0]
    if not found:
        hint = did_you_mean(name, [item.name for item in objects.values()])
        raise error(f"no variable is called `{name}`", span, hint=hint)
    keys = ", ".join(f"`{item.key}`" for item in found[:4])
    raise error(f"`{name}` exists {len(found)} times: {keys}", span, hint="name the one that is meant")


def address(value: AddressOf, type_: Type | None, objects: Mapping[str, MemoryObject]) -> tuple[MemoryObject, int]:
    """The object and the address that ``value`` means, to be held in ``type_``. Raises ``PtxmmError``."""
    target = value.target
    if target.path is not None:
        found = at_path(objects, target.name, target.path)
        if len(found) != 1:
            raise error(f"no variable is called `{target.path.text}:{target.name}`", value.span)
        item = found[0]
    else:
        item = find_object(objects, target.name, target.span)
    if item.space == "tmem":
        message = "an address of tensor memory in a register is not supported yet"
        raise error(message, value.span, kind="unsupported", hint=f"instructions name it: [{item.name}]")
    if type_ is not None and type_.bits == 32:
        check_window(item, value.span)
    elif type_ is not None and type_.bits != 64:
        message = f"the address of {item.name} has 64 bits and does not fit in .{type_.name}"
        raise error(message, value.span, kind="type")
    index = 0 if target.index is None else target.index
    if not 0 <= index * item.type.bytes + value.offset <= item.size:
        raise error(f"the address is outside {item.name}, which has {item.size} bytes", value.span, kind="type")
    # As in PTX a name stands for the address in its state space, here in that of the cluster if it has one (5.4.4).
    start = item.address if value.generic or type_ is None else item.mapped or item.window or item.address
    return item, start + index * item.type.bytes + value.offset


def check_window(item: MemoryObject, span: Span) -> None:
    """Refuse a 32-bit address but of ``.shared`` memory (PTX ISA 6.4.1). Raises ``PtxmmError`` (kind ``type``)."""
    if item.space != "shared":
        message = f"the address of {item.name} has 64 bits: only those in .shared memory fit in 32"
        raise error(message, span, kind="type", hint="use 64 bits, as `mov.u64` does")


def at_path(objects: Mapping[str, MemoryObject], name: str, path: Path) -> list[MemoryObject]:
    """The objects called ``name`` in a CTA with these levels of its path."""

    def lies_there(owner: tuple[int | None, ...]) -> bool:
        numbers = dict(zip(LEVELS, owner, strict=False))
        return all(numbers.get(level) == number for level, number in path.levels)

    return [o for o in objects.values() if o.name == name and o.owner is not None and lies_there(o.owner)]
