"""From an opcode with its qualifiers to a row of the instruction table and one choice per group, or a clear error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.ops import Type
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import DIALECT, DIALECT_ROWS, FORMS, OTHER_INSTRUCTIONS, ROWS, SINCE, Form, Row, Version
from ptxmm.ptx.tables.versions import LATER, NOT_YET
from ptxmm.ptx.tables.wording import GROUPS, HINTS

_MEMORY_KINDS = frozenset({"load", "store", "atomic"})
DEFAULT_ISA = (8, 5)
# The entries of SINCE that matter for the version that nearly every test is checked with.
_NEWER = tuple(entry for entry in SINCE if entry[2].ptx > DEFAULT_ISA)


@dataclass(frozen=True, slots=True)
class Qualified:
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
    width = max(1, span.end_column - span.column)
    return PtxmmError(message, kind=kind, line=span.line, column=span.column, width=width, hint=hint)


def clip(text: str, limit: int = 40) -> str:
    """``text``, cut where an error message would become unreadable."""
    return text if len(text) <= limit else text[:limit] + "..."


def dotted(names: Iterable[str]) -> str:
    """Qualifiers as they are written: ``.a .b``."""
    return " ".join(f".{name}" for name in names)


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
    return any(_looks_like_type(name) for name, _ in instruction.qualifiers)


def _looks_like_type(name: str) -> bool:
    if name in ("v2", "v4", "v8", "f16x2", "bf16", "bf16x2"):
        return True
    return name[:1] in ("b", "u", "s", "f") and name[1:].isdecimal()


def form_of(instruction: Instruction, dialect: bool) -> Form:
    """The row of the table for ``instruction``. Raises ``PtxmmError``: unknown, not supported, or of the other
    dialect."""
    return row_of(instruction, dialect).form


def row_of(instruction: Instruction, dialect: bool) -> Row:
    """As ``form_of``, with the index of its qualifiers."""
    rows = (DIALECT_ROWS if dialect else ROWS).get(instruction.opcode, ())
    if len(rows) == 1 and not rows[0].words:
        return rows[0]
    names = {name for name, _ in instruction.qualifiers}
    for row in rows:
        if row.words <= names:
            return row
    raise _no_row(instruction, dialect, rows)


def _no_row(instruction: Instruction, dialect: bool, rows: tuple[Row, ...]) -> PtxmmError:
    opcode, shown = instruction.opcode, clip(instruction.opcode)
    place = instruction.opcode_span
    span = Span(place.line, place.column, place.column + len(opcode))
    if opcode in OTHER_INSTRUCTIONS:
        what, hint = NOT_YET.get(opcode, ("not supported yet", None))
        first = f".{instruction.qualifiers[0][0]}" if instruction.qualifiers else ""
        return at(place, f"`{shown}{clip(first)}` is {what}", kind="unsupported", hint=hint)
    if rows:
        names = [name for name in (DIALECT if dialect else FORMS) if name.partition(".")[0] == opcode]
        for name, there in instruction.qualifiers:
            match = close_match(name, {word for row in rows for word in row.words})
            if match is not None and match != name:
                return at(there, f"`{shown}` has no form `.{clip(name)}`", hint=f"did you mean `.{match}`?")
        return at(place, f"there is no such form of `{shown}`", hint=f"the forms are {', '.join(names)}")
    if opcode in ROWS:
        hint = "use beq, bne, blt, ble, bgt or bge" if opcode == "setp" else None
        return at(span, f"`{shown}` is not part of the untyped dialect", hint=hint)
    if opcode in DIALECT:
        return at(span, f"`{shown}` is an instruction of the untyped dialect, not of PTX", hint=_typed_hint(opcode))
    match = close_match(opcode, {*(DIALECT_ROWS if dialect else ROWS), *OTHER_INSTRUCTIONS})
    return at(span, f"unknown instruction `{shown}`", hint=f"did you mean `{match}`?" if match else None)


def _typed_hint(opcode: str) -> str:
    form = DIALECT[opcode]
    if opcode == "goto":
        return "write bra"
    if form.kind == "compare_branch":
        return f"write setp.{form.fixed['cmp']}.type p, a, b; @p bra label"
    return "surface, texture and constant accesses are in the dialect only"


def qualify(instruction: Instruction, dialect: bool) -> Qualified:
    """Sort the qualifiers of ``instruction`` into groups (PTX ISA 9.7; one of each kind, any order).

    Checks what the row alone says: no unknown qualifiers, what is required, the types of an operation; the rules
    between qualifiers are in ``rules.py``. Raises ``PtxmmError`` of kind ``isa``, or ``unsupported`` for real
    qualifiers that are not supported yet.
    """
    row = row_of(instruction, dialect)
    form = row.form
    chosen: dict[str, str] = {}
    types: list[Type] = []
    spans: dict[str, Span] = {}
    for name, span in instruction.qualifiers:
        groups = row.groups_of.get(name)
        if groups is None:
            if name not in row.words:
                raise _illegal(instruction, row, name, span, dialect)
            groups = (f" {name}",)  # a word of the row's name; no group is called so
        group = groups[0]
        if group == "type":
            types.append(parse_type(name))
            if len(types) > (2 if form.kind == "cvt" else 1):
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


def _illegal(instruction: Instruction, row: Row, name: str, span: Span, dialect: bool) -> PtxmmError:
    form = row.form
    opcode = form.opcode
    if name in form.later:
        version = LATER.get((opcode, name))
        shown = f"`{opcode}.{name}`" if version is None else f"`{opcode}.{name}`, PTX ISA {version}"
        return at(span, f"`.{name}` is not supported yet ({shown})", kind="unsupported")
    if dialect and _looks_like_type(name):
        return at(span, f"`.{name}`: the untyped dialect has no types", hint="leave the type out, or type every access")
    hint = HINTS.get((opcode, name))
    group = _group_anywhere(name)
    if hint is None and group is not None and group in form.groups:
        legal = form.groups[group]
        hint = f"{GROUPS[group][1]} of `{opcode}`: {dotted(legal)}" if len(legal) > 1 else None
    if hint is None and group is None:
        match = close_match(name, {s for spellings in form.groups.values() for s in spellings})
        hint = f"did you mean `.{match}`?" if match else None
        return at(span, f"`{opcode}` has no qualifier `.{clip(name)}`", hint=hint)
    return at(span, f"`{opcode}` takes no `.{name}`", hint=hint)


def _group_anywhere(name: str) -> str | None:
    """The group that ``name`` belongs to in any instruction."""
    for form in (*FORMS.values(), *DIALECT.values()):
        for group, spellings in form.groups.items():
            if name in spellings:
                return group
    return "sem" if name == "sc" else None


def _check_required(q: Qualified) -> None:
    for group in q.form.required:
        if group not in q.chosen:
            one, _ = GROUPS[group]
            article = "" if one.startswith("`") else "an " if one[0] in "aeo" else "a "
            options = q.form.groups[group]
            if group == "type" and q.form.types_by is not None:
                options = q.form.types_by[1][q.chosen[q.form.types_by[0]]]
            text = f"such as {dotted(['u32'])}" if group == "type" and "u32" in options else dotted(options)
            sign = "," if text.startswith("such") else ":"
            end = "" if one.startswith("`") else f"{sign} {text}"
            raise at(q.instruction.opcode_span, f"`{shown(q)}` needs {article}{one}{end}")
    if q.form.kind == "cvt" and len(q.types) != 2:
        raise at(q.instruction.opcode_span, "`cvt` needs two types: the new one and the old one, such as .u64.u32")


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


def check_version(q: Qualified, isa: tuple[int, int]) -> None:
    """Refuse what is later than PTX ISA ``isa``. Raises ``PtxmmError`` of kind ``isa``, which names the version."""
    form = q.form
    words = form.opcode.split(".")
    given = {name for name, _ in q.instruction.qualifiers if name not in words}
    for opcodes, needed, version in _NEWER if isa == DEFAULT_ISA else SINCE:
        if version.ptx > isa and (not opcodes or form.opcode in opcodes) and given.issuperset(needed):
            name = ".".join((form.opcode, *needed))
            span = next(span for word, span in q.instruction.qualifiers if word == needed[0])
            raise _too_new(span, name, version, isa)
    if form.since.ptx > isa:
        raise _too_new(q.instruction.opcode_span, form.opcode, form.since, isa)


def _too_new(span: Span, name: str, version: Version, isa: tuple[int, int]) -> PtxmmError:
    message = f"`{name}` is PTX ISA {version.name}, and the version here is {Version(isa).name}"
    return at(span, message, hint=f"--isa {version.name}")


def requires(instruction: Instruction, *, dialect: bool = False) -> Version:
    """The first PTX ISA version and target that have ``instruction`` with its qualifiers (the latest of each).

    ``sm`` is the number of the target without the suffix of its architecture-specific features: ``tensormap.replace``
    and ``wgmma`` need sm_90a.
    """
    form = form_of(instruction, dialect)
    given = {name for name, _ in instruction.qualifiers}
    later = (v for opcodes, needed, v in SINCE if given.issuperset(needed) and (not opcodes or form.opcode in opcodes))
    versions = [form.since, *later]
    return Version(max(v.ptx for v in versions), max(v.sm for v in versions))
