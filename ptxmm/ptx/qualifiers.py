"""From an opcode with its qualifiers to a row of the instruction table and one choice per group, or a clear error."""

from __future__ import annotations

import re

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.ops import Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.qualified import Qualified, at, close_match, dotted, shown
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import DIALECT, FORMS, OTHER_INSTRUCTIONS, Form, Row, first_words, rows_of
from ptxmm.ptx.tables.form import Version
from ptxmm.ptx.tables.later import LATER_FORMS, LATER_INSTRUCTIONS, NOT_YET
from ptxmm.ptx.tables.wording import HINTS, SCOPE_WORDS, TYPE_WORDS, named

_SHAPE = re.compile(r"m[0-9]+n[0-9]+(?:k[0-9]+)?")
_NOT_A_TYPE = re.compile(r"(?:bf|[busfi])[0-9]{1,3}(?:x[0-9])?")
_LATER_FIRST = frozenset(opcode for opcode, _, _ in LATER_FORMS)
_MANY = 32  # more options are not listed in an error
DEFAULT_ISA = (8, 5)


def too_new(span: Span, what: str, version: Version, isa: tuple[int, int], *, supported: bool = True) -> PtxmmError:
    """The refusal of ``what``, which is of a later PTX ISA version than ``isa``."""
    message = f"{what} is PTX ISA {version.name}, and the version here is {Version(isa).name}"
    flag = f"--isa {version.name}"
    return at(span, message, hint=flag if supported else f"it is not supported with {flag} either")


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
    if form is None or "proxy" not in form.fixed:
        return None
    return any(meant_as_type(name) for name, _ in instruction.qualifiers)


def _looks_like_type(name: str) -> bool:
    if name in ("v2", "v4", "v8", "f16x2", "bf16", "bf16x2"):
        return True
    return name[:1] in ("b", "u", "s", "f") and name[1:].isdecimal()


def row_of(instruction: Instruction, dialect: bool, isa: tuple[int, int] = DEFAULT_ISA) -> Row:
    """The row of the table for ``instruction``, with the index of its qualifiers; ``isa``: the PTX ISA version that
    errors speak of. Raises ``PtxmmError``: unknown, not supported, or of the other dialect."""
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
    if "cmp" in form.fixed:
        return f"write setp.{form.fixed['cmp']}.type p, a, b; @p bra label"
    return "surface, texture and constant accesses are in the dialect only"


def qualify(instruction: Instruction, dialect: bool, isa: tuple[int, int] = DEFAULT_ISA) -> Qualified:
    """Sort the qualifiers of ``instruction`` into groups (PTX ISA 9.7; one of each kind, any order).

    ``isa`` is the PTX ISA version that errors about what is not supported speak of.
    Checks what the row alone says: no unknown qualifiers, what is required, the types of an operation; the rules
    between qualifiers are in ``check``. Raises ``PtxmmError`` of kind ``isa``, or ``unsupported`` for real
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
                raise _illegal(row.form, name, span, dialect, isa)
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
                raise at(span, f"`.{chosen[group]}` and `.{name}` are both {named(form, group)[1]}: give one")
            group = free
        chosen[group] = name
        spans[group] = span
    result = Qualified(instruction, form, chosen, tuple(types), spans, dialect)
    _check_required(result)
    _check_types(result)
    return result


def check(q: Qualified) -> None:
    """Check what no single group says. Raises ``PtxmmError`` of kind ``isa``."""
    if "src" in q.chosen and "dst" in q.chosen:
        _check_order(q)
    # Of the rows that the dialect shares with PTX, nothing more is checked there.
    if q.form.rule is not None and (not q.dialect or "proxy" in q.form.fixed):
        q.form.rule(q)


def _check_order(q: Qualified) -> None:
    """The order of two state spaces says which is the destination; no other order has a meaning (A43)."""
    dst, src = q.span("dst"), q.span("src")
    if (src.line, src.column) < (dst.line, dst.column):
        right = f"write .{q.chosen['dst']}.{q.chosen['src']}"
        message = f"the destination comes first: `.{q.chosen['dst']}` before `.{q.chosen['src']}`"
        raise at(src, message, hint=right)


def _illegal(form: Form, name: str, span: Span, dialect: bool, isa: tuple[int, int]) -> PtxmmError:
    opcode = form.opcode
    if name in form.later:
        version = form.later[name]
        if version is not None and isa < version.ptx:
            return too_new(span, f"`{opcode}.{name}`", version, isa, supported=False)
        return at(span, f"`.{name}` is not supported yet (`{opcode}.{name}`)", kind="unsupported")
    if dialect and _looks_like_type(name):
        return at(span, f"`.{name}`: the untyped dialect has no types", hint="leave the type out, or type every access")
    hint = HINTS.get((opcode, name))
    group = _group_anywhere(name)
    if hint is None and group is None:
        return _unknown(form, name, span)
    if hint is None and group is not None and len(legal := form.groups.get(group, ())) > 1:
        shown = dotted(legal) if len(legal) <= _MANY else f".{legal[0]} to .{legal[-1]}"
        hint = f"{named(form, group)[1]} of `{opcode}`: {shown}"
    return at(span, f"`{opcode}` takes no `.{name}`", hint=hint)


def _unknown(form: Form, name: str, span: Span) -> PtxmmError:
    """The refusal of a qualifier that no instruction has."""
    if name in SCOPE_WORDS and "scope" in form.groups:
        scopes = form.groups["scope"]
        word = SCOPE_WORDS[name]
        hint = f"did you mean `.{word}`? " if word in scopes else ""
        return at(span, f"`.{name}` is no scope of PTX", hint=f"{hint}the scopes are {dotted(scopes)}")
    if meant_as_type(name) and "type" in form.groups:
        meant = [t for t in TYPE_WORDS.get(name, ()) if t in form.groups["type"]]
        close = close_match(name, form.groups["type"])
        meant = meant or ([close] if close else [])
        return at(
            span,
            f"`.{name}` is no type of PTX",
            hint=f"did you mean {' or '.join(f'`.{t}`' for t in meant)}?" if meant else None,
        )
    match = close_match(name, {s for spellings in form.groups.values() for s in spellings})
    hint = f"did you mean `.{match}`?" if match else ""
    return at(span, f"`{form.opcode}` has no qualifier `.{clip(name)}`", hint=hint or None)


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
            one, _ = named(q.form, group)
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
        what = "two types: the new one and the old one, such as .u64.u32" if q.form.opcode == "cvt" else "two types"
        raise at(q.instruction.opcode_span, f"`{q.form.opcode}` needs {what}")


def _check_types(q: Qualified) -> None:
    if q.form.types_by is None or not q.types:
        return
    group, table = q.form.types_by
    legal, name = table[q.chosen[group]], q.chosen["type"]
    if name not in legal:
        shown = f"{q.form.opcode}.{q.chosen[group]}"
        raise at(q.span("type"), f"`{shown}` has no type .{name}", hint=f"types of `{shown}`: {dotted(legal)}")
