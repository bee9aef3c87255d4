"""The syntax tree of a model text, as written: nothing is resolved here."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.errors import Span


class Name(Struct, frozen=True):
    """A set or a relation by its name (also ``_``, ``id`` and ``0``)."""

    name: str
    span: Span
    depth: int = 1


class Operation(Struct, frozen=True):
    """An operator with its operands.

    ``operator`` is ``|``, ``;``, ``&`` (two or more operands), ``\\``, ``*`` (two), ``+``, ``star``, ``?``, ``^-1``,
    ``~`` or ``[]`` (one). ``span`` is the place of the operator.
    """

    operator: str
    operands: tuple[Expression, ...]
    span: Span
    depth: int


class Call(Struct, frozen=True):
    """``name(arguments)``."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span
    depth: int


class Conditional(Struct, frozen=True):
    """``if "condition" then yes else no``."""

    condition: str
    yes: Expression
    no: Expression
    span: Span
    depth: int


Expression = Name | Operation | Call | Conditional


class Definition(Struct, frozen=True):
    """``name = body`` or ``name(parameters) = body``."""

    name: str
    parameters: tuple[Name, ...] | None
    body: Expression
    span: Span


class Let(Struct, frozen=True):
    """``let d and d ...`` or ``let rec d and d ...``; ``override``: in place of those in files included after it."""

    definitions: tuple[Definition, ...]
    recursive: bool
    span: Span
    override: bool = False


class Check(Struct, frozen=True):
    """``acyclic``, ``irreflexive`` or ``empty`` of an expression; ``negated`` for ``~``; ``flag``: reported only."""

    kind: str
    negated: bool
    flag: bool
    body: Expression
    name: str | None
    span: Span
    name_span: Span | None


class Include(Struct, frozen=True):
    """``include "file"``."""

    file: str
    span: Span


class Show(Struct, frozen=True):
    """``show``: checked, otherwise without effect."""

    bodies: tuple[Expression, ...]
    span: Span


Statement = Let | Check | Include | Show


class File(Struct, frozen=True):
    """One model file: its title (None if it has none) and its statements."""

    title: str | None
    statements: tuple[Statement, ...]
