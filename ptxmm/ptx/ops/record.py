"""The record of an operation: how it is written, and what each of its operands does.

What it accesses at its addresses is said by its ``touches`` (``basic.Touch``).

``opcode`` has the opcode with its qualifiers, a word for each, or for several that are always there. ``{field}`` stands
for a field or a property: the name of a type, the length of a tuple, the name of the field itself where it is a flag;
``{flag?word}`` for the word if the flag is set; ``{+field}`` for the length of a tuple of more than one. A word with
something that is not there is left out.

``roles`` has the operands in the order of the text, a word for each:

- ``[field]``: an address that it accesses; ``[field/]``: one of tensor memory, which counts columns;
- ``=field:type``: a register that it writes, or a vector of them; ``=first:type|second:type`` for ``d|p``;
- ``field:type``: a source operand, or a vector of them; ``!flag`` after it: its predicate is ``!p`` where ``flag`` is;
- ``field:u64~9.0``: a register that may have 32 bits since this version of the PTX ISA;
- ``(field:type)``: read without being written down;
- ``#field``: integer constants;
- ``128``: this number.

``*`` at the end: in braces even if it is one. A type is one of PTX, or a field or property; where that is a tuple there
is one for each item, and each is an operand. What is None is not there, but for ``=field``, which is ``_`` then.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from ptxmm.ptx.ops.basic import PREDICATE, Reg, Type

_FIELD = re.compile(r"\{(\+?)(\w+)(?:\?([\w:]+))?\}")
_WORD = re.compile(r"([=|#(\[]?)(\w+)(?::([\w.]+))?([*/]?)(?:!(\w+))?(?:~(\d+)\.(\d+))?[])]?")
_TYPE = re.compile(r"([bus])(16|32|64)")


class Slot(NamedTuple):
    """One word of ``roles``."""

    mark: str
    field: str
    type: Type | str
    end: str
    negated: str
    short: tuple[int, int] | None

    def item(self, op: object) -> Any:
        """What the operation has there; None if it is not there."""
        return int(self.field) if self.field.isdecimal() else getattr(op, self.field)

    def typed(self, op: object) -> list[tuple[Any, Type]]:
        """The items as they are written, each with the type of its value; those that share a type are one vector."""
        item = self.item(op)
        if item is None or item == () or self.type == "":
            return []
        typ: Any = self.type
        if isinstance(typ, str):
            name, _, index = typ.partition(".")
            typ = getattr(op, name)[int(index)] if index else getattr(op, name)
        return list(zip(item, typ, strict=True)) if isinstance(typ, tuple) else [(item, typ)]

    def registers(self, op: object) -> list[tuple[str, Type]]:
        """The registers in it, each with the type of its value."""
        return [
            (one.name, typ)
            for item, typ in self.typed(op)
            for one in (item if isinstance(item, tuple) else (item,))
            if isinstance(one, Reg)
        ]


@cache
def slots(roles: str) -> tuple[Slot, ...]:
    """The words of ``roles``."""
    return tuple(_slot(word) for word in roles.replace("|", " |").split())


def _slot(word: str) -> Slot:
    found = _WORD.fullmatch(word)
    assert found is not None, word
    mark, field, name, end, negated, *short = found.groups()
    known = _TYPE.fullmatch(name or "")
    typ = PREDICATE if name == "pred" else Type(known[1], int(known[2])) if known else name or ""
    return Slot(mark, field, typ, end, negated or "", (int(short[0]), int(short[1])) if short[0] else None)


def spelled(op: object, opcode: str) -> str:
    """The opcode of ``op`` with its qualifiers, as ``opcode`` gives them."""
    return ".".join(text for word in opcode.split() if (text := _spelled(op, word)) is not None)


def _spelled(op: object, word: str) -> str | None:
    found = _FIELD.search(word)
    if found is None:
        return word
    several, field, flag = found.groups()
    item = getattr(op, field)
    if item is None or item is False or (several and len(item) == 1):
        return None
    if item is True:
        item = flag or field
    elif isinstance(item, tuple):
        item = len(item)
    elif isinstance(item, Type):
        item = item.name
    return f"{word[: found.start()]}{item}{word[found.end() :]}"
