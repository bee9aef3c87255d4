"""A litmus test as read, before names, types and addresses are known; ``build`` makes a ``Test`` of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxmm.errors import Span
from ptxmm.program.test import Placement
from ptxmm.ptx.ops import Type
from ptxmm.ptx.syntax import Statement

LEVELS = ("gpu", "grid", "cluster", "cta", "warp")


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer."""

    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class Path:
    """A place in the scope tree, as much of it as was written: (level, number) pairs."""

    levels: tuple[tuple[str, int], ...]
    span: Span

    @property
    def text(self) -> str:
        """As written, with single spaces."""
        return ", ".join(f"{level} {number}" for level, number in self.levels)


@dataclass(frozen=True, slots=True)
class NameTerm:
    """``x``, ``a[1]``, ``cta 1:s`` or ``P0:r1`` (``thread`` is ``P0``)."""

    name: str
    span: Span
    index: int | None = None
    thread: str | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class AddressOf:
    """``&x`` or ``&x+4``: an address; ``offset`` is in bytes."""

    target: NameTerm
    offset: int
    span: Span


Value = Constant | AddressOf
RawTerm = NameTerm | Constant | AddressOf


@dataclass(frozen=True, slots=True)
class RawComparison:
    """``left op right``."""

    op: str
    left: RawTerm
    right: RawTerm


@dataclass(frozen=True, slots=True)
class RawConjunction:
    """All items hold."""

    items: tuple[RawProposition, ...]


@dataclass(frozen=True, slots=True)
class RawDisjunction:
    """Some item holds."""

    items: tuple[RawProposition, ...]


@dataclass(frozen=True, slots=True)
class RawNegation:
    """The item does not hold."""

    item: RawProposition


RawProposition = RawComparison | RawConjunction | RawDisjunction | RawNegation


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable. ``type`` is None in ``x = 0``; ``count`` None unless it is an array; ``initial`` None where
    no value is written; ``owner`` the CTA of ``.shared .u32 s @ cta 1``."""

    name: str
    span: Span
    space: str
    type: Type | None = None
    count: int | None = None
    initial: tuple[Value, ...] | None = None
    owner: Path | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """``name @ proxy aliases target``."""

    name: str
    span: Span
    proxy: str
    target: str
    target_span: Span


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """``P0:r1 = 5`` (``type`` None), ``.reg .u32 P0:r1`` (``initial`` None), or both; ``thread`` as in ``NameTerm``."""

    thread: str
    name: str
    span: Span
    type: Type | None = None
    initial: Value | None = None


@dataclass(frozen=True, slots=True)
class ThreadSource:
    """One thread: its placement and its labels and instructions in order."""

    name: str
    span: Span
    placement: Placement
    statements: tuple[Statement, ...]
    registers: tuple[RegisterEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class RawCondition:
    """The quantified statement."""

    kind: Literal["exists", "~exists", "forall"]
    proposition: RawProposition
    text: str


@dataclass(frozen=True, slots=True)
class TestSource:
    """A whole litmus test as read."""

    __test__ = False

    name: str
    threads: tuple[ThreadSource, ...]
    declarations: tuple[Variable | Alias, ...] = ()
    registers: tuple[RegisterEntry, ...] = ()
    condition: RawCondition | None = None
    locations: tuple[NameTerm, ...] = ()
    filter: RawProposition | None = None
    description: str = ""
    info: tuple[tuple[str, str], ...] = ()
    dialect: bool = False
    file: str = "<text>"
    text: str = ""
