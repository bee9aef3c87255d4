"""From an opcode with its qualifiers to a row of the instruction table and one choice per group, or a clear error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.ops import Type
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import (
    DIALECT,
    EXCLUDES,
    FORMS,
    GROUPS,
    HINTS,
    OTHER_INSTRUCTIONS,
    SINCE,
    STRONG_SPACES,
    Form,
    Version,
)

_MEMORY_KINDS = frozenset({"load", "store", "atomic"})


@dataclass(frozen=True, slots=True)
class Qualified:
    """An instruction with its row of the table and its qualifiers by group (types: in order, for ``cvt``)."""

    instruction: Instruction
    form: Form
    chosen: dict[str, str]
    types: tuple[Type, ...]
    dialect: bool

    def get(self, group: str) -> str | None:
        """The qualifier chosen from ``group``, without its dot."""
        return self.chosen.get(group)


def at(span: Span, message: str, *, kind: str = "isa", hint: str | None = None) -> PtxmmError:
    """A ``PtxmmError`` that points at ``span``."""
    width = max(1, span.end_column - span.column)
    return PtxmmError(message, kind=kind, line=span.line, column=span.column, width=width, hint=hint)


def clip(text: str, limit: int = 40) -> str:
    """``text``, cut where an error message would become unreadable."""
    return text if len(text) <= limit else text[:limit] + "..."


def close_match(word: str, words: Iterable[str]) -> str | None:
    """The word of ``words`` that ``word`` is most probably a misspelling of, or None."""
    from difflib import get_close_matches  # only on the way to an error

    found = get_close_matches(clip(word).lower(), sorted(words), 1, 0.6)
    return found[0] if found else None


def parse_type(name: str) -> Type:
    """The type that a spelling of the table (``u32``, ``pred``) stands for."""
    return Type("pred", 1) if name == "pred" else Type(name[0], int(name[1:]))


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
    opcode = instruction.opcode
    table = DIALECT if dialect else FORMS
    names = {name for name, _ in instruction.qualifiers}
    if "proxy" in names and f"{opcode}.proxy" in table:
        return table[f"{opcode}.proxy"]
    if opcode in table:
        return table[opcode]
    span = Span(
        instruction.opcode_span.line, instruction.opcode_span.column, instruction.opcode_span.column + len(opcode)
    )
    shown = clip(opcode)
    if opcode in OTHER_INSTRUCTIONS:
        first = f".{instruction.qualifiers[0][0]}" if instruction.qualifiers else ""
        raise at(instruction.opcode_span, f"`{shown}{clip(first)}` is not supported yet", kind="unsupported")
    if opcode in FORMS:
        hint = "use beq, bne, blt, ble, bgt or bge" if opcode == "setp" else None
        raise at(span, f"`{shown}` is not part of the untyped dialect", hint=hint)
    if opcode in DIALECT:
        raise at(span, f"`{shown}` is an instruction of the untyped dialect, not of PTX", hint=_typed_hint(opcode))
    match = close_match(opcode, {name.partition(".")[0] for name in table} | OTHER_INSTRUCTIONS)
    raise at(span, f"unknown instruction `{shown}`", hint=f"did you mean `{match}`?" if match else None)


def _typed_hint(opcode: str) -> str:
    form = DIALECT[opcode]
    if opcode == "goto":
        return "write bra"
    if form.kind == "compare_branch":
        return f"write setp.{form.fixed['cmp']}.type p, a, b; @p bra label"
    return "surface, texture and constant accesses are in the dialect only"


def qualify(instruction: Instruction, dialect: bool) -> Qualified:
    """Sort the qualifiers of ``instruction`` into groups and check them (PTX ISA 9.7; one of each kind, any order).

    Raises ``PtxmmError`` of kind ``isa``, or ``unsupported`` for real qualifiers that are not supported yet.
    """
    form = form_of(instruction, dialect)
    chosen: dict[str, str] = {}
    types: list[Type] = []
    spans: dict[str, Span] = {}
    for name, span in instruction.qualifiers:
        group = next((g for g, spellings in form.groups.items() if name in spellings), None)
        if group is None:
            raise _illegal(instruction, form, name, span, dialect)
        if group == "type":
            types.append(parse_type(name))
            if len(types) > (2 if form.kind == "cvt" else 1):
                raise at(span, f"one type too many: `.{name}`")
        elif group in chosen:
            if chosen[group] == name:
                raise at(span, f"`.{name}` is there twice")
            raise at(span, f"`.{chosen[group]}` and `.{name}` are both {GROUPS[group][1]}: give one")
        chosen[group] = name
        spans[group] = span
    result = Qualified(instruction, form, chosen, tuple(types), dialect)
    _check_required(result)
    _check_types(result, spans)
    if form.kind in _MEMORY_KINDS:
        _check_memory(result, spans)
    return result


def _illegal(instruction: Instruction, form: Form, name: str, span: Span, dialect: bool) -> PtxmmError:
    opcode = form.opcode
    if name in form.later:
        shown = f"{opcode}.{name}"
        return at(span, f"`.{name}` is not supported yet (`{shown}`)", kind="unsupported")
    if dialect and _looks_like_type(name):
        return at(span, f"`.{name}`: the untyped dialect has no types", hint="leave the type out, or type every access")
    hint = HINTS.get((opcode, name))
    group = _group_anywhere(name)
    if hint is None and group is not None and group in form.groups:
        legal = form.groups[group]
        hint = f"{GROUPS[group][1]} of `{opcode}`: {_dotted(legal)}" if len(legal) > 1 else None
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


def _dotted(names: Iterable[str]) -> str:
    return " ".join(f".{name}" for name in names)


def _check_required(q: Qualified) -> None:
    for group in q.form.required:
        if group not in q.chosen:
            one, _ = GROUPS[group]
            article = "an" if one[0] in "aeo" else "a"
            options = q.form.groups[group]
            if group == "type" and q.form.types_by is not None:
                options = q.form.types_by[1][q.chosen[q.form.types_by[0]]]
            text = f"such as {_dotted(['u32'])}" if group == "type" and "u32" in options else _dotted(options)
            sign = "," if text.startswith("such") else ":"
            shown = _shown(q)
            raise at(q.instruction.opcode_span, f"`{shown}` needs {article} {one}{sign} {text}")
    if q.form.kind == "cvt" and len(q.types) != 2:
        raise at(q.instruction.opcode_span, "`cvt` needs two types: the new one and the old one, such as .u64.u32")


def _shown(q: Qualified) -> str:
    """The opcode with what decides about the error: its memory order or operation."""
    parts = [q.form.opcode] + [q.chosen[g] for g in ("mmio", "sem", "op", "mode", "cmp") if g in q.chosen]
    return ".".join(parts)


def _check_types(q: Qualified, spans: dict[str, Span]) -> None:
    if q.form.types_by is None or not q.types:
        return
    group, table = q.form.types_by
    legal = table[q.chosen[group]]
    if q.types[0].name not in legal:
        shown = f"{q.form.opcode}.{q.chosen[group]}"
        message = f"`{shown}` has no type .{q.types[0].name}"
        raise at(spans["type"], message, hint=f"types of `{shown}`: {_dotted(legal)}")


def _check_memory(q: Qualified, spans: dict[str, Span]) -> None:
    """The rules between memory order, scope, state space and cache qualifiers (9.7.10.8, 9.7.10.11)."""
    opcode, sem, space = q.form.opcode, q.get("sem"), q.get("space")
    for spelling, group, why in EXCLUDES:
        if spelling in (sem, q.get("mmio")) and group in q.chosen:
            message = f"`{opcode}.{spelling}` takes no {GROUPS[group][0]}: `.{q.chosen[group]}`"
            raise at(spans[group], message, hint=why)
    if "cop" in q.chosen and "evict" in q.chosen:
        message = f"`.{q.chosen['cop']}` and `.{q.chosen['evict']}` exclude each other"
        raise at(spans["evict"], message, hint="give a cache operator or an eviction priority")
    if "mmio" in q.chosen:
        _check_mmio(q, spans)
    if q.form.kind == "atomic":
        return
    if sem in ("relaxed", "acquire", "release") and "scope" not in q.chosen:
        scopes = _dotted(q.form.groups["scope"])
        raise at(q.instruction.opcode_span, f"`{opcode}.{sem}` needs a scope: {scopes}")
    if sem is None and "scope" in q.chosen:
        orders = [s for s in q.form.groups["sem"] if s not in ("weak", "volatile")]
        raise at(
            spans["scope"],
            f"`{opcode}` is weak without a memory order, and a weak access has no scope: `.{q.chosen['scope']}`",
            hint=f"memory orders that take a scope: {_dotted(orders)}",
        )
    if sem not in (None, "weak") and space is not None and space not in STRONG_SPACES:
        message = f"`{opcode}.{sem}` can't access .{space}"
        raise at(spans["space"], message, hint=f"state spaces of strong accesses: {_dotted(STRONG_SPACES)}")


def _check_mmio(q: Qualified, spans: dict[str, Span]) -> None:
    opcode, hint = q.form.opcode, f"write {q.form.opcode}.mmio.relaxed.sys{{.global}}.type"
    if q.get("sem") != "relaxed":
        raise at(spans.get("sem", spans["mmio"]), f"`{opcode}.mmio` must be .relaxed", hint=hint)
    if q.get("scope") != "sys":
        raise at(spans.get("scope", spans["mmio"]), f"`{opcode}.mmio` must have .sys scope", hint=hint)
    if q.get("space") not in (None, "global"):
        message = f"`{opcode}.mmio` can't access .{q.chosen['space']}"
        raise at(spans["space"], message, hint=hint)


def requires(instruction: Instruction, *, dialect: bool = False) -> Version:
    """The first PTX ISA version and target that have ``instruction`` with its qualifiers (the latest of each)."""
    form = form_of(instruction, dialect)
    given = {name for name, _ in instruction.qualifiers}
    later = (v for opcodes, needed, v in SINCE if given.issuperset(needed) and (not opcodes or form.opcode in opcodes))
    versions = [form.since, *later]
    return Version(max(v.ptx for v in versions), max(v.sm for v in versions))
