"""What a rule is, what it finds, and what it looks at."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ptxmm.cuda import AsmStatement, Body, Function, Instruction, Problem, Unit, Use
from ptxmm.cuda.template import Template

_DISPATCH = frozenset({"NV_IF_TARGET", "NV_IF_ELSE_TARGET", "NV_DISPATCH_TARGET"})
"""Macros of CUDA that choose code by target."""


class Rule(Struct, frozen=True):
    """A rule of ``ptxmm lint``. ``severity`` is error, warning or note; ``section`` is where its reason is written;
    ``default``: whether it is on unless it is selected. Its page is ``docs/lint/ID.md``."""

    id: str
    name: str
    severity: str
    summary: str
    section: str
    default: bool = True


class Edit(Struct, frozen=True):
    """A replacement of the characters from ``start`` to ``end`` of the source."""

    start: int
    end: int
    text: str


class Finding(Struct, frozen=True):
    """A finding of a rule at the characters from ``start`` to ``end`` of the source. ``hint`` is the mend in words,
    ``edits`` what does it, where that is exact."""

    rule: str
    start: int
    end: int
    message: str
    hint: str | None = None
    edits: tuple[Edit, ...] = ()


class Facts(Struct, frozen=True):
    """What rules ask about a function: the names in its body, those that are assigned to, the words of the names
    before its body, the bodies of all its ``asm`` statements, and by the index of a token the fence that the statement
    right before it ends with."""

    names: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    head: frozenset[str] = frozenset()
    bodies: tuple[Body, ...] = ()
    fences: Mapping[int, str] = field(default_factory=dict)


class Site(Struct, frozen=True):
    """An ``asm`` statement with its PTX, as rules see it.

    ``isa`` and ``arch`` are what the user compiles for (None: not said); ``registers`` are the names that any
    statement of the file declares; ``facts`` are those of the function around it.
    """

    unit: Unit
    statement: AsmStatement
    body: Body
    isa: tuple[int, int] | None
    arch: int | None
    registers: frozenset[str]
    facts: Facts

    @property
    def function(self) -> Function | None:
        """The function that the statement stands in."""
        number = self.statement.function
        return None if number is None else self.unit.functions[number]

    @property
    def name(self) -> str:
        """The name of that function, or the empty text."""
        function = self.function
        return function.name if function is not None else ""

    @property
    def template(self) -> Template:
        """The text of the statement."""
        template = self.statement.template
        assert template is not None  # there is no body without one
        return template

    @property
    def memory(self) -> bool:
        """Whether the statement has a ``"memory"`` clobber (or one that a macro makes)."""
        return bool({"memory", "?"} & set(self.statement.clobbers))

    @property
    def before_volta(self) -> bool:
        """Whether this may be compiled only for targets or versions without the memory model of PTX 6.0."""
        if self.isa is not None and self.isa < (6, 0):
            return True
        if self.statement.architectures[1] <= 700 or (self.arch is not None and self.arch < 70):
            return True
        return not self.facts.names.isdisjoint(_DISPATCH)

    def at(
        self,
        rule: str,
        place: Instruction | Use | Problem | tuple[int, int],
        message: str,
        hint: str | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> Finding:
        """A finding at characters of the template: at the opcode and the qualifiers of an instruction, at all of an
        operand or a problem, or from one to before another."""
        match place:
            case Instruction():
                span = place.start, place.head
            case tuple():
                span = place
            case _:
                span = place.start, place.end
        return Finding(rule, *self.template.span(*span), message, hint, edits)

    def whole(self, rule: str, message: str, hint: str | None = None, edits: tuple[Edit, ...] = ()) -> Finding:
        """A finding at the keyword ``asm``."""
        keyword = self.statement.keyword
        return Finding(rule, keyword.start, keyword.end, message, hint, edits)

    def qualifier(self, instruction: Instruction, word: str) -> tuple[int, int]:
        """The characters of the template that are the qualifier ``word``, or else the opcode with its qualifiers."""
        template = self.template
        position = instruction.start
        while True:
            position = template.text.find(f".{word}", position, instruction.head)
            if position < 0:
                return instruction.start, instruction.head
            end = position + len(word) + 1
            following = template.text[end : end + 1]
            if not (following.isalnum() or following in ("_", ":")):
                return position, end
            position = end
