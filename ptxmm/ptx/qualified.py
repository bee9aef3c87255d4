"""A row of the instruction table, and an instruction with its row and its qualifiers by group (``qualifiers.py``)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.tables.form import Version

NOTHING: Mapping[Any, Any] = MappingProxyType({})
TypesBy = tuple[str, Mapping[str, tuple[str, ...]]]


class Form(Struct, frozen=True):
    """One row. ``opcode`` is the first word of the instruction and the qualifiers that tell the row from others, such
    as ``cp.async.bulk``; ``make`` makes the operation; ``rule`` checks what no single group of qualifiers says.

    ``groups`` maps a group to its legal spellings (besides the words of ``opcode``); a spelling that two groups have
    belongs to the first one that is still free, in their order (``.dst.src``). ``required`` lists the groups that may
    not be left out; ``types_by`` is (group, {spelling: legal types}) where the types depend on another qualifier;
    ``slots`` are the operands, with ``?`` for optional ones; ``later`` are real qualifiers of the instruction that are
    not supported yet, with their version if that is after PTX ISA 8.5; ``fixed`` are facts that belong to the opcode
    (its proxy, its comparison). ``since`` is the version of the row, and ``newer`` those of qualifiers that came after
    it (``a+b``: of the two together).
    """

    opcode: str
    make: Callable[[Qualified, Names], Op]
    groups: Mapping[str, tuple[str, ...]]
    slots: tuple[str, ...]
    since: Version
    required: tuple[str, ...] = ()
    types_by: TypesBy | None = None
    later: Mapping[str, Version | None] = field(default_factory=lambda: NOTHING)
    fixed: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    rule: Callable[[Qualified], None] | None = None
    newer: Mapping[Version, str] = field(default_factory=lambda: NOTHING)


class Names(Struct, frozen=True):
    """The names an instruction may use besides registers; ``predicates`` are those of registers that are known to be
    predicates, where the text alone leaves it open. ``cuts``: takes what is to be told of integers that their types
    can't hold, and that are cut as ptxas does; None: each is an error."""

    variables: Container[str]
    labels: Mapping[str, int]
    predicates: Container[str] = ()
    cuts: list[PtxmmError] | None = None


class Qualified(Struct, frozen=True):
    """An instruction with its row of the table and its qualifiers by group (types: in order, for ``cvt``).

    The types are those of one access: for ``.f16x2`` and ``.bf16x2`` that of a half, and ``packed`` is 2.
    """

    instruction: Instruction
    form: Form
    chosen: dict[str, str]
    types: tuple[Type, ...]
    spans: dict[str, Span]
    dialect: bool

    def get(self, group: str) -> str | None:
        """The qualifier chosen from ``group``, without its dot."""
        return self.chosen.get(group)

    @property
    def packed(self) -> int:
        """How many values one register holds: 2 for the packed types."""
        return 2 if self.chosen.get("type", "").endswith("x2") else 1

    @property
    def count(self) -> int:
        """How many registers an operand has: that of the vector qualifier, or 1."""
        return int(self.chosen.get("vec", "v1")[1:])

    def span(self, group: str) -> Span:
        """Where the qualifier of ``group`` stands, or else the instruction with its qualifiers."""
        return self.spans.get(group, self.instruction.opcode_span)


Maker = Callable[[Qualified, Names], Op]
Check = Callable[[Qualified], None]


def at(span: Span, message: str, *, kind: str = "isa", hint: str | None = None) -> PtxmmError:
    """A ``PtxmmError`` that points at ``span``."""
    return PtxmmError(message, kind=kind, hint=hint).at(span)


def dotted(names: Iterable[str]) -> str:
    """Qualifiers as they are written: ``.a .b``."""
    return " ".join(f".{name}" for name in names)


def shown(q: Qualified) -> str:
    """The opcode with what decides about an error: its memory order or operation."""
    parts = [q.form.opcode] + [q.chosen[g] for g in ("mmio", "sem", "op", "mode", "cmp") if g in q.chosen]
    return ".".join(parts)


def close_match(word: str, words: Iterable[str]) -> str | None:
    """The word of ``words`` that ``word`` is most probably a misspelling of, or None."""
    from difflib import get_close_matches  # only on the way to an error

    found = get_close_matches(clip(word).lower(), sorted(words), 1, 0.6)
    return found[0] if found else None
