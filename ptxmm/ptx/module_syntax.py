"""The parsed form of a PTX module (PTX ISA 4, 5, 7, 11): variables and functions, names made unique."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ptxmm.errors import Span
from ptxmm.ptx import syntax
from ptxmm.ptx.ops import Type


class Place(Struct, frozen=True):
    """What ``.loc`` names (PTX ISA 11.5.4): a place in the source that the PTX was compiled from. ``inlined`` is the
    place of the call that was inlined (``inlined_at``)."""

    file: str
    line: int
    column: int
    inlined: Place | None = None


class SymbolAddress(Struct, frozen=True):
    """The address of a variable or function in an initializer: ``x``, ``x+4``, ``generic(x)`` (PTX ISA 5.4.4)."""

    name: str
    offset: int
    generic: bool
    span: Span


class Variable(Struct, frozen=True):
    """A variable or parameter (PTX ISA 5.4, 7.1). ``space`` is ``global shared const param local tex reg``.

    ``type`` is that of an element, ``count`` the number of elements of all dimensions and vector lanes together:
    None for a scalar, 0 for ``[]``. ``initial`` has the unsigned bits of every element, or addresses; None without an
    initializer. ``linkage`` is ``extern visible weak common`` or empty. ``opaque`` is ``texref samplerref surfref``
    where that is the type; ``type`` is then ``.b64``, the handle (PTX ISA 5.3). ``everywhere``: all GPUs have the same
    one (``.managed``, ``.unified``: 5.4.8), else each has its own.
    """

    name: str
    space: str
    type: Type
    count: int | None
    alignment: int | None
    initial: tuple[int | SymbolAddress, ...] | None
    linkage: str
    span: Span
    opaque: str | None = None
    everywhere: bool = False


class Call(Struct, frozen=True):
    """``call{.uni} (returns), function, (arguments), targets;`` (PTX ISA 9.7.13.5). ``targets`` is the prototype or
    the ``.calltargets`` of an indirect call."""

    function: syntax.Name
    returns: tuple[syntax.Name, ...]
    arguments: tuple[syntax.Operand, ...]
    targets: syntax.Name | None
    guard: syntax.Guard | None
    span: Span
    text: str


class BranchTargets(Struct, frozen=True):
    """``name: .branchtargets L1, L2;`` (PTX ISA 11.3); ``kind`` is ``branchtargets``, ``calltargets`` (``labels`` are
    then functions) or ``callprototype`` (without ``labels``)."""

    name: str
    labels: tuple[str, ...]
    kind: str
    span: Span


class Line(Struct, frozen=True):
    """A statement of a function with the ``.loc`` in force."""

    statement: syntax.Instruction | syntax.Label | Call | BranchTargets
    place: Place | None


class Function(Struct, frozen=True):
    """An ``.entry`` or ``.func`` (PTX ISA 11.2). ``body`` is None for a declaration.

    ``registers`` has every declared register by its name without ``%``; ``variables`` those of the function scope and
    of all scopes nested in it. Where two scopes declare one name, the later ones are renamed ``name$1``, ``name$2``,
    in the statements too. ``directives`` has the numbers of ``maxntid``, ``reqntid``, ``noreturn`` and so on.
    """

    name: str
    entry: bool
    linkage: str
    parameters: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    registers: Mapping[str, Type]
    variables: tuple[Variable, ...]
    body: tuple[Line, ...] | None
    directives: Mapping[str, tuple[int, ...]]
    span: Span


class Module(Struct, frozen=True):
    """A PTX module. ``version`` is that of ``.version``, ``targets`` the words of ``.target``."""

    version: tuple[int, int]
    targets: tuple[str, ...]
    address_size: int
    variables: tuple[Variable, ...]
    functions: Mapping[str, Function]
    file: str
    text: str
