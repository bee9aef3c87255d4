"""A litmus test as read, before names, types and addresses are known; ``build`` makes a ``Test`` of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ptxmm.errors import Span
from ptxmm.program.condition import Formula
from ptxmm.program.test import Claims, Placement, SameValue
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.syntax import Statement

LEVELS = ("gpu", "grid", "cluster", "cta", "warp")


class Constant(Struct, frozen=True):
    """An integer; ``bits`` if it is written as ``0x...`` or ``0b...``: in a floating-point type those are its bits."""

    value: int
    span: Span
    bits: bool = False


class Path(Struct, frozen=True):
    """A place in the scope tree, as much of it as was written: (level, number) pairs."""

    levels: tuple[tuple[str, int], ...]
    span: Span

    @property
    def text(self) -> str:
        """As written, with single spaces."""
        return ", ".join(f"{level} {number}" for level, number in self.levels)


class NameTerm(Struct, frozen=True):
    """``x``, ``a[1]``, ``cta 1:s`` or ``P0:r1`` (``thread`` is ``P0``)."""

    name: str
    span: Span
    index: int | None = None
    thread: str | None = None
    path: Path | None = None


class AddressOf(Struct, frozen=True):
    """``&x`` or ``&x+4``: an address; ``offset`` is in bytes. ``generic``: as an initial value ``generic(x)``."""

    target: NameTerm
    offset: int
    span: Span
    generic: bool = False


class Real(Struct, frozen=True):
    """A floating-point constant as written (PTX ISA 4.5.2): ``-1.0``, ``0f3F800000``, ``0d...``."""

    text: str
    span: Span


class MbarrierState(Struct, frozen=True):
    """``mbarrier(pending, tx)``: an mbarrier initialised in phase 0 that misses so many arrivals and bytes."""

    pending: int
    tx: int
    span: Span


class TensorMapValue(Struct, frozen=True):
    """``tensormap(target, type, box, dims, strides, steps)``: a tensor map whose boxes have so many elements in each
    dimension, innermost first. ``dims``: those of the tensor (None, of one dimension only: all of the variable);
    ``strides`` in bytes, for all but the innermost dimension (None: no padding); ``steps``: the traversal strides."""

    target: NameTerm
    type: Type
    box: tuple[int, ...]
    span: Span
    dims: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    steps: tuple[int, ...] = (1,)


Value = Constant | AddressOf | Real
Initial = Value | MbarrierState | TensorMapValue
RawTerm = NameTerm | Constant | AddressOf | Real


RawProposition = Formula[RawTerm]


class Variable(Struct, frozen=True):
    """A declared variable. ``type`` is None in ``x = 0``; ``count``, the number of elements, None unless it is an array
    or a vector; ``initial`` None where no value is written; ``owner`` the CTA of ``.shared .u32 s @ cta 1``;
    ``alignment`` the bytes of ``.align``."""

    name: str
    span: Span
    space: str
    type: Type | None = None
    count: int | None = None
    initial: tuple[Initial, ...] | None = None
    owner: Path | None = None
    alignment: int | None = None


class Alias(Struct, frozen=True):
    """``name @ proxy aliases target``."""

    name: str
    span: Span
    proxy: str
    target: str
    target_span: Span


class MultimemAddress(Struct, frozen=True):
    """``name @ multimem x, y``; ``targets``: the names of the locations and where they stand."""

    name: str
    span: Span
    targets: tuple[tuple[str, Span], ...]


Declaration = Variable | Alias | MultimemAddress


class RegisterEntry(Struct, frozen=True):
    """``P0:r1 = 5`` (``type`` None), ``.reg .u32 P0:r1`` (``initial`` None), or both; ``thread`` as in ``NameTerm``."""

    thread: str
    name: str
    span: Span
    type: Type | None = None
    initial: Value | None = None


class ThreadSource(Struct, frozen=True):
    """One thread: its placement and its labels and instructions in order; ``body``: resolved instructions instead."""

    name: str
    span: Span
    placement: Placement
    statements: tuple[Statement, ...]
    registers: tuple[RegisterEntry, ...] = ()
    body: tuple[Op, ...] | None = None


class RawCondition(Struct, frozen=True):
    """The quantified statement."""

    kind: Literal["exists", "~exists", "forall"]
    proposition: RawProposition
    text: str


class TestSource(Struct, frozen=True):
    """A whole litmus test as read."""

    __test__ = False

    name: str
    threads: tuple[ThreadSource, ...]
    declarations: tuple[Declaration, ...] = ()
    registers: tuple[RegisterEntry, ...] = ()
    condition: RawCondition | None = None
    locations: tuple[NameTerm, ...] = ()
    filter: RawProposition | None = None
    description: str = ""
    info: tuple[tuple[str, str], ...] = ()
    dialect: bool = False
    file: str = "<text>"
    text: str = ""
    isa: tuple[int, int] = (8, 5)
    claims: Claims | None = None
    same_value: SameValue | None = None
