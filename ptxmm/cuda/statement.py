"""What the scanner finds: ``asm`` statements, the functions they stand in, and the conditions around them."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.cuda.source import Source, Token
from ptxmm.cuda.template import Template


class AsmOperand(Struct, frozen=True):
    """One operand of an ``asm`` statement (Inline PTX Assembly 1.1, 1.2).

    ``constraint`` is the string with its modifier (``=r``), or None if a macro makes it; ``expression`` the C++
    expression between the parentheses; ``start`` and ``end`` are offsets of the constraint and its expression.
    ``name`` is that of ``[name]``.
    """

    constraint: str | None
    expression: str
    start: int
    end: int
    output: bool
    name: str | None = None

    @property
    def letter(self) -> str | None:
        """The constraint letter; None if it is unknown or not one letter."""
        if self.constraint is None:
            return None
        letters = self.constraint.lstrip("=+&")
        return letters if len(letters) == 1 else None

    @property
    def read_write(self) -> bool:
        """Whether the modifier is ``+``."""
        return self.constraint is not None and "+" in self.constraint


class Function(Struct, frozen=True):
    """A function around ``asm`` statements. ``first`` to ``last`` are the indices of the tokens of its body in the
    unit; ``head`` those of what stands before it."""

    name: str
    head: tuple[int, int]
    first: int
    last: int

    def words(self, unit: Unit) -> list[str]:
        """The tokens before the body."""
        return [token.text for token in unit.tokens[self.head[0] : self.head[1]]]


class AsmStatement(Struct, frozen=True):
    """One ``asm`` statement. Offsets are into the source.

    ``template`` is None where a macro or the parameter of a macro is part of it. ``clobbers`` are the clobbered names,
    ``sections`` the number of colons. ``index`` and ``after`` are the indices of its first token and of the one after
    it in the unit (-1 inside a macro). ``function`` is an index into the unit's functions, or None. ``architectures``
    is the range of ``__CUDA_ARCH__`` that the conditions around it leave: (least, first not).
    """

    keyword: Token
    volatile: bool
    template: Template | None
    operands: tuple[AsmOperand, ...]
    clobbers: tuple[str, ...]
    sections: int
    close: int
    index: int
    after: int
    function: int | None
    loop: bool
    macro: bool
    architectures: tuple[int, int]

    @property
    def outputs(self) -> tuple[AsmOperand, ...]:
        """The output operands."""
        return tuple(operand for operand in self.operands if operand.output)


class Unit(Struct, frozen=True):
    """A scanned source. ``tokens`` are those outside of macros."""

    source: Source
    tokens: list[Token]
    functions: tuple[Function, ...]
    statements: tuple[AsmStatement, ...]
