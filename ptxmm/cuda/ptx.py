"""The PTX of a template as statements: scopes, declarations, labels, instructions (PTX ISA 4, 5.4, 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.cuda.opcodes import OPCODES, WORDS, qualifier_words
from ptxmm.cuda.statement import AsmOperand, AsmStatement
from ptxmm.cuda.template import PLACEHOLDER
from ptxmm.cuda.uses import Use, uses_of
from ptxmm.errors import PtxmmError
from ptxmm.ptx import syntax
from ptxmm.ptx.isa import predicate_names, resolve
from ptxmm.ptx.ops import Op
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.reader import read

ANY_VERSION = (99, 9)
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|\"[^\"\n]*\"")
_STOP = re.compile(r"[;{}:]")
_WORD = re.compile(r"(?:@!?[%\w$]+\s*)?([A-Za-z_%$][\w$]*)((?:\s*\.[\w]+(?:::\w+)*)*)")
_LABEL = re.compile(r"\s*([%A-Za-z_$][\w$]*)\s*:(?!:)")
_REGISTERS = re.compile(r"\.reg\b((?:\s*\.\w+)+)([\s\S]*)")
_VARIABLE = re.compile(r"\.(shared|local|param|global|const)\b([\s\S]*)")
_LINE_START = re.compile(r"[\r\n][ \t]*+(?:@!?[%\w$]+\s+)?([a-z][a-z0-9]*)(?:\.[a-z][\w:]*)+(?=\s)")
_NAME = re.compile(r"\s*([%A-Za-z_$][\w$]*)\s*(?:<\s*(\d+)\s*>)?\s*")
_EXPRESSION = re.compile(r"[(*/<>&^~?=]|%\$unknown|\|\||\d\s*[-+]\s*\(|\b[A-Za-z_]\w*\[")
_REFERENCE = re.compile(r"%\$(\d+)")
_NUMBER = re.compile(r"[0-9]{1,4}|0x[0-9a-fA-F]{1,4}")
_TEXT = re.compile(r"\S")
_MOST = 200_000
_LONG = 1000
_PATIENCE = 100
"""Instructions with errors of syntax whose message is looked for: that takes milliseconds."""


class Declaration(Struct, frozen=True):
    """A register or variable that the template declares: its name as written, its type (``pred``, ``b32``) or state
    space, its place in the template, and the depth of ``{ }``."""

    name: str
    type: str
    start: int
    end: int
    depth: int


class Problem(Struct, frozen=True):
    """Something that is no PTX: what, where in the template, and the mend."""

    message: str
    start: int
    end: int
    hint: str | None = None


class Instruction(Struct, frozen=True):
    """An instruction. ``start`` and ``end`` are those in the template, ``head`` the end of its qualifiers.

    ``parsed`` is None if its syntax is not known here, ``op`` if the instruction is not; ``problem`` says that it is
    none of PTX, ``cuts`` that constants do not fit their types; ``uses`` are the operands of the
    statement that it mentions; ``depth`` is that of ``{ }``.
    """

    opcode: str
    qualifiers: tuple[str, ...]
    start: int
    end: int
    head: int
    guarded: bool
    depth: int
    parsed: syntax.Instruction | None = None
    op: Op | None = None
    problem: Problem | None = None
    uses: tuple[Use, ...] = ()
    cuts: tuple[Problem, ...] = ()

    @property
    def mnemonic(self) -> str:
        """The opcode with its qualifiers."""
        return ".".join((self.opcode, *self.qualifiers))

    @property
    def qualified(self) -> bool:
        """Whether a qualifier is one of PTX. (Other assembly languages have ``mov.d`` and ``add.s``.)"""
        return any(word in qualifier_words() or "::" in word for word in self.qualifiers)


class Body(Struct, frozen=True):
    """What a template says. ``labels`` have their places; ``balance`` is how many ``{`` are open at its end;
    ``problems`` are errors of syntax."""

    instructions: tuple[Instruction, ...]
    declarations: tuple[Declaration, ...]
    labels: tuple[tuple[str, int, int], ...]
    problems: tuple[Problem, ...]
    balance: int

    @property
    def is_ptx(self) -> bool:
        """Whether this looks like PTX rather than the assembly language of a host."""
        if self.declarations:
            return True
        return any(i.opcode in WORDS or (i.opcode in OPCODES and i.qualified) for i in self.instructions)


class Reader(Struct):
    """Reads templates; remembers what it has read, as sources repeat themselves."""

    known: dict[tuple[str, tuple[str, ...]], Body] = field(default_factory=dict)
    errors: int = 0

    def read(self, statement: AsmStatement) -> Body | None:
        """The PTX of ``statement``; None if macros are part of its template."""
        template = statement.template
        if template is None or len(template.text) > _MOST:
            return None
        texts = tuple(_text(operand) for operand in statement.operands)
        key = (template.text, texts)
        body = self.known.get(key)
        if body is None:
            body = self.known[key] = _body(template.text, texts, _PATIENCE - self.errors)
            self.errors += sum(instruction.parsed is None for instruction in body.instructions)
        return body


def _text(operand: AsmOperand) -> str:
    """What matters about ``operand`` for the PTX: for ``n`` its value if that is short, ``n?`` if not; else the
    letter of the constraint."""
    if operand.letter == "n":
        value = operand.expression.strip()
        return f"n{value}" if _NUMBER.fullmatch(value) else "n?"
    return operand.letter or "?"


# -- statements ----------------------------------------------------------------------------------------------------


class _Parts(Struct):
    instructions: list[tuple[int, int, int]] = field(default_factory=list)  # start, end, depth
    declarations: list[Declaration] = field(default_factory=list)
    labels: list[tuple[str, int, int]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    depth: int = 0
    open_end: bool = False  # whether the last instruction has no `;`


def _body(text: str, operands: Sequence[str], patience: int) -> Body:
    """``patience``: how many errors of syntax to explain."""
    plain = _COMMENT.sub(lambda hit: " " * len(hit[0]), text)
    parts = _split(plain)
    variables = frozenset(d.name for d in parts.declarations if d.type in ("shared", "local", "param", "global"))
    predicates = frozenset(d.name.lstrip("%") for d in parts.declarations if d.type == "pred")
    labels = {name: number for number, (name, _, _) in enumerate(parts.labels)}
    flat = re.sub(r"[\n\r\t\v\f]", " ", plain)
    names = _Names(variables, predicates, labels)
    instructions: list[Instruction] = []
    for start, end, depth in parts.instructions:
        instructions.append(_instruction(flat, start, end, depth, operands, names, patience > 0))
        patience -= instructions[-1].parsed is None
    for start, end, _ in parts.instructions:
        parts.problems += _unended(plain, start, end)
    if parts.open_end and instructions[-1].qualified and not parts.problems:
        last = instructions[-1]
        parts.problems.append(Problem(f"missing `;` after `{last.mnemonic}`", last.end - 1, last.end, "write ;"))
    return Body(tuple(instructions), tuple(parts.declarations), tuple(parts.labels), tuple(parts.problems), parts.depth)


def _split(text: str) -> _Parts:
    parts = _Parts()
    position, start = 0, 0
    depth = 0  # of scopes
    braces = 0  # of vectors in the statement
    while True:
        hit = _STOP.search(text, position)
        end, mark = (hit.start(), hit[0]) if hit else (len(text), "")
        if mark:
            position = end + 1
        empty = _TEXT.search(text, start, end) is None
        if mark == "{" and empty and not braces:
            depth += 1
            start = position
            continue
        if mark == "{" or (mark == "}" and braces):
            braces += 1 if mark == "{" else -1
            continue
        if mark == ":":
            if braces == 0 and _label(parts, text, start, position):
                start = position
            elif text[position : position + 1] == ":":
                position += 1
            continue
        if not empty:
            _part(parts, text, start, end, depth, mark == ";")
        if braces and not empty:
            at = text.find("{", start, end)
            parts.problems.append(Problem("the vector that begins here has no end", at, at + 1, "write }"))
        start, braces = position, 0
        if mark == "}":
            depth -= 1
        if not mark:
            break
    parts.depth = depth
    return parts


def _label(parts: _Parts, text: str, start: int, end: int) -> bool:
    """Whether the text up to the colon before ``end`` is a label, which ``parts`` gets then."""
    label = _LABEL.match(text, start, end + 1) if end - start < _LONG else None
    if label is None or label.end() != end:
        return False
    parts.labels.append((label[1], label.start(1), label.end(1)))
    return True


def _part(parts: _Parts, text: str, start: int, end: int, depth: int, ended: bool) -> None:
    first = start + len(text[start:end]) - len(text[start:end].lstrip())
    last = start + len(text[start:end].rstrip())
    parts.open_end = text[first] != "." and not ended
    if text[first] != ".":
        parts.instructions.append((first, last, depth))
        return
    registers = _REGISTERS.match(text, first, last)
    if registers is not None:
        words = [word.strip() for word in registers[1].split(".") if word.strip()]
        parts.declarations += _declared(registers[2], registers.start(2), words, depth)
        return
    variable = _VARIABLE.match(text, first, last)
    if variable is not None:
        name = re.search(r"([%A-Za-z_$][\w$]*)\s*(?:\[[^\]]*\]\s*)*(?:=[\s\S]*)?$", variable[2])
        if name is not None:
            at = variable.start(2) + name.start(1)
            parts.declarations.append(Declaration(name[1], variable[1], at, at + len(name[1]), depth))


def _declared(text: str, offset: int, words: list[str], depth: int) -> Iterator[Declaration]:
    position = 0
    while (hit := _NAME.match(text, position)) is not None:
        if hit[2] is None:
            yield Declaration(hit[1], words[-1], offset + hit.start(1), offset + hit.end(1), depth)
        else:
            for number in range(min(int(hit[2]), 4096)):
                at = (offset + hit.start(1), offset + hit.end(1))
                yield Declaration(f"{hit[1]}{number}", words[-1], *at, depth)
        position = hit.end()
        if text[position : position + 1] != ",":
            break
        position += 1


def _unended(text: str, start: int, end: int) -> Iterator[Problem]:
    """An instruction that begins on a new line inside another one: a ``;`` is missing."""
    for hit in _LINE_START.finditer(text, start, end):
        if hit[1] in OPCODES:
            at = hit.start(1)
            yield Problem(f"missing `;` before `{text[at : hit.end()]}`", at, hit.end(), "write ; after the one before")
            return


# -- instructions --------------------------------------------------------------------------------------------------


class _Names(Struct, frozen=True):
    variables: frozenset[str]
    predicates: frozenset[str]
    labels: Mapping[str, int]


def _instruction(
    text: str, start: int, end: int, depth: int, operands: Sequence[str], names: _Names, explain: bool
) -> Instruction:
    head = _WORD.match(text, start, end)
    if head is None:
        nothing = Problem("this is no instruction of PTX", start, end)
        return Instruction("", (), start, end, end, False, depth, problem=nothing)
    qualifiers = tuple(word for word in re.sub(r"\s", "", head[2]).split(".") if word)
    made = Instruction(head[1], qualifiers, start, end, head.end(), text[start] == "@", depth)
    own = text[start:end]
    if any(operands[n] == "C" for n in _numbers(own, operands)):
        return made
    given = _REFERENCE.sub(lambda hit: _constant(hit, operands), own)
    # With a constant of unknown value, what the instruction table says about values is not certain.
    open_value = any(operands[n] == "n?" for n in _numbers(own, operands))
    parsed, problem = _parsed(given, start, explain)
    if parsed is None:
        certain = problem is not None and head[1] in OPCODES - {"call"} and not _EXPRESSION.search(own)
        uses = uses_of(None, head[1], qualifiers, own, start)
        return replace(made, problem=problem if certain and not open_value else None, uses=uses)
    op: Op | None = None
    cuts: list[PtxmmError] = []
    try:
        predicates = names.predicates | predicate_names((parsed,))
        op = resolve(
            parsed,
            dialect=False,
            variables=names.variables,
            labels=names.labels,
            isa=ANY_VERSION,
            predicates=predicates,
            cuts=cuts,
        )
    except PtxmmError as error:
        if error.kind in ("isa", "type", "syntax") and not open_value:
            problem = _problem(error, start, end)
    uses = uses_of((parsed, op), head[1], qualifiers, own, start)
    cut = tuple(_problem(error, start, end) for error in cuts) if op is not None and not open_value else ()
    return replace(made, parsed=parsed, op=op, problem=problem, uses=uses, cuts=cut)


def _numbers(text: str, operands: Sequence[str]) -> list[int]:
    return [number for hit in _REFERENCE.finditer(text) if (number := int(hit[1])) < len(operands)]


def _constant(hit: re.Match[str], operands: Sequence[str]) -> str:
    """The text of an operand of constraint ``n``, as long as its placeholder; other operands as they are."""
    number = int(hit[1])
    if number >= len(operands) or operands[number][:1] != "n":
        return hit[0]
    value = operands[number][1:].replace("?", "0")
    return value.ljust(len(hit[0])) if len(value) <= len(hit[0]) else hit[0]


def _parsed(text: str, start: int, explain: bool) -> tuple[syntax.Instruction | None, Problem | None]:
    if not explain and (len(text) > _MOST // 10 or read(text) is None):
        return None, None
    try:
        found = parse_statements(text)
    except PtxmmError as error:
        # What the grammar knows and ptxmm does not model is PTX.
        return None, None if error.kind == "unsupported" else _problem(error, start, start + len(text))
    if len(found) == 1 and isinstance(found[0], syntax.Instruction):
        return found[0], None
    return None, None


def _problem(error: PtxmmError, start: int, end: int) -> Problem:
    at = start + (error.column or 1) - 1
    message = error.message.replace(PLACEHOLDER, "%")
    hint = error.hint.replace(PLACEHOLDER, "%") if error.hint else None
    return Problem(message, min(at, max(start, end - 1)), min(at + error.width, end), hint)
