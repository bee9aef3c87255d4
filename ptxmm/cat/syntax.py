"""The syntax tree of a model text, as written: nothing is resolved here."""

from __future__ import annotations

from dataclasses import dataclass

from ptxmm.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A set or a relation by its name (also ``_``, ``id`` and ``0``)."""

    name: str
    span: Span
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with its operands.

    ``operator`` is ``|``, ``;``, ``&`` (two or more operands), ``\\``, ``*`` (two), ``+``, ``star``, ``?``, ``^-1``,
    ``~`` or ``[]`` (one). ``span`` is the place of the operator.
    """

    operator: str
    operands: tuple[Expression, ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Call:
    """``name(arguments)``."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Conditional:
    """``if "condition" then yes else no``."""

    condition: str
    yes: Expression
    no: Expression
    span: Span
    depth: int


Expression = Name | Operation | Call | Conditional


@dataclass(frozen=True, slots=True)
class Definition:
    """``name = body`` or ``name(parameters) = body``."""

    name: str
    parameters: tuple[Name, ...] | None
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    """``let d and d ...`` or ``let rec d and d ...``; ``override``: in place of those in files included after it."""

    definitions: tuple[Definition, ...]
    recursive: bool
    span: Span
    override: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """``acyclic``, ``irreflexive`` or ``empty`` of an expression; ``negated`` for ``~``; ``flag``: reported only."""

    kind: str
    negated: bool
    flag: bool
    body: Expression
    name: str | None
    span: Span
    name_span: Span | None


@dataclass(frozen=True, slots=True)
class Include:
    """``include "file"``."""

    file: str
    span: Span


@dataclass(frozen=True, slots=True)
class Show:
    """``show``: checked, otherwise without effect."""

    bodies: tuple[Expression, ...]
    span: Span


Statement = Let | Check | Include | Show


@dataclass(frozen=True, slots=True)
class File:
    """One model file: its title (None if it has none) and its statements."""

    title: str | None
    statements: tuple[Statement, ...]
