"""From an opcode with its qualifiers to a row of the instruction table and one choice per group, or a clear error."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.ops import Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import DIALECT, FORMS, OTHER_INSTRUCTIONS, Form, Row, first_words, rows_of
from ptxmm.ptx.tables.form import Version
from ptxmm.ptx.tables.later import LATER_FORMS
from ptxmm.ptx.tables.versions import LATER, LATER_INSTRUCTIONS, NOT_YET
from ptxmm.ptx.tables.wording import GROUPS, HINTS, SCOPE_WORDS, TYPE_WORDS

_SHAPE = re.compile(r"m[0-9]+n[0-9]+(?:k[0-9]+)?")
_NOT_A_TYPE = re.compile(r"(?:bf|[busfi])[0-9]{1,3}(?:x[0-9])?")
_LATER_FIRST = frozenset(opcode for opcode, _, _ in LATER_FORMS)
_MANY = 32  # more options are not listed in an error
_MEMORY_KINDS = frozenset({"load", "store", "atomic"})
DEFAULT_ISA = (8, 5)


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


def at(span: Span, message: str, *, kind: str = "isa", hint: str | None = None) -> PtxmmError:
    """A ``PtxmmError`` that points at ``span``."""
    return PtxmmError(message, kind=kind, hint=hint).at(span)


def too_new(span: Span, what: str, version: Version, isa: tuple[int, int], *, supported: bool = True) -> PtxmmError:
    """The refusal of ``what``, which is of a later PTX ISA version than ``isa``."""
    message = f"{what} is PTX ISA {version.name}, and the version here is {Version(isa).name}"
    flag = f"--isa {version.name}"
    return at(span, message, hint=flag if supported else f"it is not supported with {flag} either")


def dotted(names: Iterable[str]) -> str:
    """Qualifiers as they are written: ``.a .b``."""
    return " ".join(f".{name}" for name in names)


def meant_as_type(name: str) -> bool:
    """Whether a qualifier is a type, or can only be a slip of the pen for one: ``.u23``, ``.i32``, ``.int``."""
    return name in TYPE_WORDS or _NOT_A_TYPE.fullmatch(name) is not None or _looks_like_type(name)


def later_form(instruction: Instruction, isa: tuple[int, int]) -> PtxmmError | None:
    """The refusal of a form of PTX ISA 9.0 or later, with its version; None where the instruction is none."""
    if instruction.opcode not in _LATER_FIRST:
        return None
    given = dict(instruction.qualifiers)
    for opcode, needed, version in LATER_FORMS:
        if opcode != instruction.opcode:
            continue
        met = [next((n for n in given if n == word or n.startswith(f"{word}::")), None) for word in needed]
        if None in met:
            continue
        span = given[met[-1]] if met and met[-1] is not None else instruction.opcode_span
        name = f"`{clip('.'.join((opcode, *(n for n in met if n is not None))))}`"
        if isa < version:
            return too_new(span, name, Version(version), isa, supported=False)
        return at(span, f"{name} is not supported yet", kind="unsupported")
    return None


def close_match(word: str, words: Iterable[str]) -> str | None:
    """The word of ``words`` that ``word`` is most probably a misspelling of, or None."""
    from difflib import get_close_matches  # only on the way to an error

    found = get_close_matches(clip(word).lower(), sorted(words), 1, 0.6)
    return found[0] if found else None


def parse_type(name: str) -> Type:
    """The type that a spelling of the table (``u32``, ``pred``) stands for; of packed types (``f16x2``) a half's."""
    if name == "pred":
        return Type("pred", 1)
    bits = name.lstrip("busf").removesuffix("x2")
    return Type(name[: 2 if name.startswith("bf") else 1], int(bits))


def is_typed(instruction: Instruction) -> bool | None:
    """Whether a memory instruction (``ld st atom red`` and the dialect's) is written as typed PTX, by its type
    qualifier; None for other instructions."""
    form = DIALECT.get(instruction.opcode)
    if form is None or form.kind not in _MEMORY_KINDS:
        return None
    return any(meant_as_type(name) for name, _ in instruction.qualifiers)


def _looks_like_type(name: str) -> bool:
    if name in ("v2", "v4", "v8", "f16x2", "bf16", "bf16x2"):
        return True
    return name[:1] in ("b", "u", "s", "f") and name[1:].isdecimal()


def form_of(instruction: Instruction, dialect: bool) -> Form:
    """The row of the table for ``instruction``. Raises ``PtxmmError``: unknown, not supported, or of the other
    dialect."""
    return row_of(instruction, dialect).form


def row_of(instruction: Instruction, dialect: bool, isa: tuple[int, int] = DEFAULT_ISA) -> Row:
    """As ``form_of``, with the index of its qualifiers; ``isa`` is the PTX ISA version that errors speak of."""
    rows = rows_of(instruction.opcode, dialect)
    if len(rows) == 1 and not rows[0].words:
        return rows[0]
    names = {name for name, _ in instruction.qualifiers}
    for row in rows:
        if row.words <= names:
            return row
    raise _no_row(instruction, dialect, rows, isa)


def _no_row(instruction: Instruction, dialect: bool, rows: tuple[Row, ...], isa: tuple[int, int]) -> PtxmmError:
    opcode, shown = instruction.opcode, clip(instruction.opcode)
    place = instruction.opcode_span
    span = Span(place.line, place.column, place.column + len(opcode))
    if opcode in OTHER_INSTRUCTIONS:
        what, hint = NOT_YET.get(opcode, ("not supported yet", None))
        first = f".{instruction.qualifiers[0][0]}" if instruction.qualifiers else ""
        name = f"`{shown}{clip(first)}`"
        version = LATER_INSTRUCTIONS.get(opcode)
        if version is not None and isa < version.ptx:
            return too_new(place, name, version, isa, supported=False)
        return at(place, f"{name} is {what}", kind="unsupported", hint=hint)
    if rows:
        names = [name for name in (DIALECT if dialect else FORMS) if name.partition(".")[0] == opcode]
        for name, there in instruction.qualifiers:
            if any(name in row.groups_of for row in rows):
                continue
            match = close_match(name, {word for row in rows for word in row.words})
            if match is not None and match != name:
                return at(there, f"`{shown}` has no form `.{clip(name)}`", hint=f"did you mean `.{match}`?")
        return at(place, f"there is no such form of `{shown}`", hint=f"the forms are {', '.join(names)}")
    if opcode in first_words(False):
        hint = "use beq, bne, blt, ble, bgt or bge" if opcode == "setp" else None
        return at(span, f"`{shown}` is not part of the untyped dialect", hint=hint)
    if opcode in DIALECT:
        return at(span, f"`{shown}` is an instruction of the untyped dialect, not of PTX", hint=_typed_hint(opcode))
    match = close_match(opcode, first_words(dialect) | OTHER_INSTRUCTIONS)
    return at(span, f"unknown instruction `{shown}`", hint=f"did you mean `{match}`?" if match else None)


def _typed_hint(opcode: str) -> str:
    form = DIALECT[opcode]
    if opcode == "goto":
        return "write bra"
    if form.kind == "compare_branch":
        return f"write setp.{form.fixed['cmp']}.type p, a, b; @p bra label"
    return "surface, texture and constant accesses are in the dialect only"


def qualify(instruction: Instruction, dialect: bool, isa: tuple[int, int] = DEFAULT_ISA) -> Qualified:
    """Sort the qualifiers of ``instruction`` into groups (PTX ISA 9.7; one of each kind, any order).

    ``isa`` is the PTX ISA version that errors about what is not supported speak of.
    Checks what the row alone says: no unknown qualifiers, what is required, the types of an operation; the rules
    between qualifiers are in ``rules.py``. Raises ``PtxmmError`` of kind ``isa``, or ``unsupported`` for real
    qualifiers that are not supported yet.
    """
    later = None if dialect else later_form(instruction, isa)
    if later is not None:
        raise later
    row = row_of(instruction, dialect, isa)
    form = row.form
    chosen: dict[str, str] = {}
    types: list[Type] = []
    spans: dict[str, Span] = {}
    for name, span in instruction.qualifiers:
        groups = row.groups_of.get(name)
        if groups is None:
            if name not in row.words:
                raise _illegal(instruction, row, name, span, dialect, isa)
            groups = (f" {name}",)  # a word of the row's name; no group is called so
        group = groups[0]
        if group == "type":
            types.append(parse_type(name))
            if len(types) > int(form.fixed.get("types", "1")):
                raise at(span, f"one type too many: `.{name}`")
        elif group in chosen:
            free = next((g for g in groups if g not in chosen), None)
            if free is None:
                if chosen[group] == name:
                    raise at(span, f"`.{name}` is there twice")
                raise at(span, f"`.{chosen[group]}` and `.{name}` are both {GROUPS[group][1]}: give one")
            group = free
        chosen[group] = name
        spans[group] = span
    result = Qualified(instruction, form, chosen, tuple(types), spans, dialect)
    _check_required(result)
    _check_types(result)
    return result


def _illegal(
    instruction: Instruction, row: Row, name: str, span: Span, dialect: bool, isa: tuple[int, int]
) -> PtxmmError:
    form = row.form
    opcode = form.opcode
    if name in form.later:
        version = LATER.get((opcode, name))
        if version is not None and isa < version.ptx:
            return too_new(span, f"`{opcode}.{name}`", version, isa, supported=False)
        return at(span, f"`.{name}` is not supported yet (`{opcode}.{name}`)", kind="unsupported")
    if dialect and _looks_like_type(name):
        return at(span, f"`.{name}`: the untyped dialect has no types", hint="leave the type out, or type every access")
    hint = HINTS.get((opcode, name))
    group = _group_anywhere(name)
    if hint is None and group is not None and group in form.groups:
        legal = form.groups[group]
        if len(legal) > 1:
            hint = f"{GROUPS[group][1]} of `{opcode}`: {dotted(legal) if len(legal) <= _MANY else _some(legal)}"
    if hint is None and group is None:
        if name in SCOPE_WORDS and "scope" in form.groups:
            scopes = form.groups["scope"]
            word = SCOPE_WORDS[name]
            hint = f"did you mean `.{word}`? " if word in scopes else ""
            return at(span, f"`.{name}` is no scope of PTX", hint=f"{hint}the scopes are {dotted(scopes)}")
        if meant_as_type(name) and "type" in form.groups:
            meant = [t for t in TYPE_WORDS.get(name, ()) if t in form.groups["type"]]
            close = close_match(name, form.groups["type"])
            meant = meant or ([close] if close else [])
            hint = f"did you mean {' or '.join(f'`.{t}`' for t in meant)}?" if meant else None
            return at(span, f"`.{name}` is no type of PTX", hint=hint)
        match = close_match(name, {s for spellings in form.groups.values() for s in spellings})
        hint = f"did you mean `.{match}`?" if match else None
        return at(span, f"`{opcode}` has no qualifier `.{clip(name)}`", hint=hint)
    return at(span, f"`{opcode}` takes no `.{name}`", hint=hint)


def _some(options: tuple[str, ...]) -> str:
    return f".{options[0]} to .{options[-1]}"


def _group_anywhere(name: str) -> str | None:
    """The group that ``name`` belongs to in any instruction."""
    for form in (*FORMS.values(), *DIALECT.values()):
        for group, spellings in form.groups.items():
            if name in spellings:
                return group
    if name == "sc":
        return "sem"
    return "shape" if _SHAPE.fullmatch(name) else None


def _check_required(q: Qualified) -> None:
    for group in q.form.required:
        if group not in q.chosen:
            one, _ = GROUPS[group]
            article = "" if one.startswith("`") else "an " if one[0] in "aeo" else "a "
            options = q.form.groups[group]
            if group == "type" and q.form.types_by is not None:
                options = q.form.types_by[1][q.chosen[q.form.types_by[0]]]
            end = f": {dotted(options)}"
            if group == "type" and "u32" in options:
                end = ", such as .u32"
            elif len(options) > _MANY:
                end = f", such as .{options[0]}"
            elif one.startswith("`"):
                end = ""
            raise at(q.instruction.opcode_span, f"`{shown(q)}` needs {article}{one}{end}")
    if q.form.fixed.get("types", "1") != "1" and len(q.types) < 2:
        what = "two types: the new one and the old one, such as .u64.u32" if q.form.kind == "cvt" else "two types"
        raise at(q.instruction.opcode_span, f"`{q.form.opcode}` needs {what}")


def shown(q: Qualified) -> str:
    """The opcode with what decides about an error: its memory order or operation."""
    parts = [q.form.opcode] + [q.chosen[g] for g in ("mmio", "sem", "op", "mode", "cmp") if g in q.chosen]
    return ".".join(parts)


def _check_types(q: Qualified) -> None:
    if q.form.types_by is None or not q.types:
        return
    group, table = q.form.types_by
    legal, name = table[q.chosen[group]], q.chosen["type"]
    if name not in legal:
        shown = f"{q.form.opcode}.{q.chosen[group]}"
        raise at(q.span("type"), f"`{shown}` has no type .{name}", hint=f"types of `{shown}`: {dotted(legal)}")
