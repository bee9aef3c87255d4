"""A test as a litmus file: canonical text that reads back as the same test."""

from __future__ import annotations

from itertools import zip_longest

from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.header import INFO
from ptxmm.program.condition import (
    AddressTerm,
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    RegisterTerm,
    Term,
    comparison_type,
)
from ptxmm.program.floats import real_text
from ptxmm.program.shared.windows import BITS, in_window
from ptxmm.program.test import MemoryObject, Placement, TensorMap, Test, Thread
from ptxmm.ptx.isa import S64, definitions, uses
from ptxmm.ptx.ops import Branch, Source, Type
from ptxmm.ptx.printer import instruction_text

_NOWHERE = Source(Span(1, 1, 2), "")
_WIDEST = 160
"""Rows of columns have at most so many characters."""


def write(test: Test) -> str:
    """``test`` in the litmus format; reading it gives the same test up to places, comments and the text of source.

    Raises ``PtxmmError`` (kind ``unsupported``) for what the format cannot say.
    """
    lines = [f"PTX {test.name}"]
    if test.description:
        lines += [_description_row(row) for row in test.description.split("\n")]
    lines += [f"{key}={value}" for key, value in test.info]
    lines.append("{")
    lines += [f"  {item};" for item in declarations(test)]
    lines.append("}")
    heads = [_head(thread) for thread in test.threads]
    bodies = [_body(test, thread) for thread in test.threads]
    table = _table(heads, bodies)
    # `|` separates columns, and columns that are too wide are read more easily one below the other.
    if any("|" in row for body in bodies for row in body) or any(len(row) > _WIDEST for row in table):
        for head, body in zip(heads, bodies, strict=True):
            lines += [f"{head} {{", *(f"  {row}" if row.endswith(":") else f"  {row};" for row in body), "}"]
    else:
        lines += table
    if test.locations:
        lines.append("locations [" + " ".join(f"{term_text(t, test)};" for t in test.locations) + "]")
    if test.filter is not None:
        lines.append(f"filter ({proposition_text(test.filter, test)})")
    if test.condition is not None:
        lines.append(f"{test.condition.kind} ({proposition_text(test.condition.proposition, test)})")
    return "\n".join(lines) + "\n"


def same(left: Test, right: Test) -> bool:
    """Whether two tests are equal up to the places and texts of their sources."""
    return _bare(left) == _bare(right)


def proposition_text(item: Proposition, test: Test) -> str:
    """``item`` as it is written in a litmus file, with as few parentheses as its structure needs."""
    match item:
        case Comparison(op, left, right):
            type_ = comparison_type(item)
            words = [
                real_text(term.value, type_)
                if isinstance(term, IntegerTerm) and type_ is not None and type_.kind == "f"
                else term_text(term, test)
                for term in (left, right)
            ]
            return f"{words[0]} {op} {words[1]}"
        case Conjunction(items):
            if len(items) == 1:
                return proposition_text(items[0], test)
            return " /\\ ".join(_operand(i, test, (Conjunction, Disjunction)) for i in items) or "true"
        case Disjunction(items):
            if len(items) == 1:
                return proposition_text(items[0], test)
            return " \\/ ".join(_operand(i, test, (Disjunction,)) for i in items) or "false"
        case Negation(inner):
            return f"~({proposition_text(inner, test)})"


def term_text(term: Term, test: Test) -> str:
    """``term`` as it is written in a litmus file: ``P0:r1``, ``x``, ``a[1]``, ``cta 1:s``, ``&x+4``, ``-1``."""
    match term:
        case RegisterTerm(thread, register):
            return f"{test.threads[thread].name}:{register}"
        case MemoryTerm(key, index):
            return f"{key}[{index}]" if test.objects[key].is_array else key
        case IntegerTerm(value):
            return str(value)
        case AddressTerm(key, offset):
            return f"&{key}{offset:+d}" if offset else f"&{key}"


def _operand(item: Proposition, test: Test, weaker: tuple[type, ...]) -> str:
    text = proposition_text(item, test)
    wrapped = isinstance(item, Conjunction | Disjunction) and len(item.items) > 1 and isinstance(item, weaker)
    return f"({text})" if wrapped else text


def _description_row(row: str) -> str:
    """One line of the description in quotes; the reader ends it there only if it has an even number of them."""
    if row.count('"') % 2 == 0:
        return f'"{row}"'
    if row[0] not in '"{' and not INFO.fullmatch(row):
        return row
    return '"' + row.replace('"', "'") + '"'


# -- initial state -------------------------------------------------------------------------------------------------


def declarations(test: Test) -> list[str]:
    """The initial state, an item for each variable and for each register that has to be declared; of a kernel, which
    declares its registers itself, for each variable."""
    return _variables(test) if test.claims is not None else [*_variables(test), *_registers(test)]


def _variables(test: Test) -> list[str]:
    found: list[str] = []
    written: set[str] = set()
    for item in test.objects.values():
        if item.name in written:
            continue
        written.add(item.name)
        if item.alias_of is not None:
            found.append(f"{item.name} @ {item.proxy} aliases {item.alias_of}")
            continue
        if item.replicas:
            found.append(f"{item.name} @ multimem {', '.join(item.replicas)}")
            continue
        value = _initial(item, test)
        if test.dialect and item.space == "global" and item.type == S64 and not item.is_array:
            found.append(f"{item.name} = {value or 0}")
            continue
        size = f"[{item.count}]" if item.is_array else ""
        copies = sum(1 for other in test.objects.values() if other.name == item.name)
        owner = _owner(item) if copies == 1 else ""
        alignment = "" if item.alignment is None else f".align {item.alignment} "
        text = f".{item.space} {alignment}.{item.type.name} {item.name}{size}{owner}"
        found.append(f"{text} = {value}" if value else text)
    return found


def _owner(item: MemoryObject) -> str:
    """The CTA of the only ``.shared`` object of its name; one that has no name of its own is that of its thread."""
    if item.owner is None or item.owner[3] is None:
        return ""
    gpu, grid, cluster, cta = item.owner
    return f" @ {placement_text(Placement(gpu, grid, cluster, cta))}"


def _initial(item: MemoryObject, test: Test) -> str:
    """The initial value, or nothing where there is none."""
    if item.unknown:
        return ""
    if item.tensormap is not None:
        made = item.tensormap
        return f"tensormap({made.target}, {made.type.name}, {_shape(made, test.objects[made.target])})"
    if item.is_array:
        values = [_element(item, index, test) for index in range(item.count)]
        while len(values) > 1 and values[-1] == "0":
            values.pop()
        return "{" + ", ".join(values) + "}"
    return _element(item, 0, test)


def _shape(made: TensorMap, target: MemoryObject) -> str:
    """The sizes of a tensor map, as few as are needed."""
    lists = [made.box]
    if len(made.box) > 1 or made.dims[0] != target.size // made.type.bytes:
        lists.append(made.dims)
    if len(made.box) > 1:
        lists += [made.strides, made.steps] if any(step != 1 for step in made.steps) else [made.strides]
    return ", ".join(str(v[0]) if len(made.box) == 1 else "{" + ", ".join(map(str, v)) + "}" for v in lists)


def _element(item: MemoryObject, index: int, test: Test) -> str:
    """The initial value of one element."""
    state = item.mbarrier[index] if item.mbarrier else None
    if state is None:
        return _value(item.initial[index], item.type, test)
    pending, tx = state
    return f"mbarrier({pending}, {tx})" if tx else f"mbarrier({pending})"


def _value(value: int, type_: Type, test: Test) -> str:
    if type_.kind == "f":
        return real_text(value, type_)
    place = test.locate(value) if type_.bits == 64 else None
    window = None if place is not None or type_.bits not in (BITS, 64) else in_window(test.objects, value)
    for found in (place, window):
        if found is not None and found[0].key == found[0].name and found[1] < found[0].size:
            text = f"{found[0].name}+{found[1]}" if found[1] else found[0].name
            return f"generic({text})" if found is place and found[0].window else text
    sign = 1 << (type_.bits - 1)
    return str((value ^ sign) - sign if type_.signed else value)


def _registers(test: Test) -> list[str]:
    """Initial values, and declarations of registers whose type the instructions do not give."""
    found: list[str] = []
    for thread in test.threads:
        written = [(name, _in_dialect(type_, test)) for op in thread.body for name, type_ in definitions(op)]
        read = [(name, _in_dialect(type_, test)) for op in thread.body for name, type_ in uses(op)]
        derived = dict(reversed([*written, *read]))
        defined = {name for name, _ in written}
        narrow = {name for name, type_ in written if type_.bits != thread.registers[name].bits}
        for name, type_ in thread.registers.items():
            value = thread.initial.get(name, 0)
            text = f"{thread.name}:{name}"
            declared = name in narrow or derived.get(name, S64 if test.dialect else None) != type_
            if declared:
                text = f".reg .{type_.name} {text}"
            if value or name not in defined:
                text += f" = {_value(value, type_, test)}"
            elif not declared:
                continue
            found.append(text)
    return found


def _in_dialect(type_: Type, test: Test) -> Type:
    return S64 if test.dialect and type_.bits > 1 else type_


# -- threads -------------------------------------------------------------------------------------------------------


def _head(thread: Thread) -> str:
    place = placement_text(thread.placement)
    return f"{thread.name} @ {place}" if place else thread.name


def placement_text(place: Placement) -> str:
    """``warp 0, cta 0, cluster 0, grid 0, gpu 0`` without the levels that say nothing, or ``host``."""
    if place.host:
        return "host"
    grid = place.grid if place.grid or place.overlap else None
    gpu = place.gpu if place.gpu or place.cta is not None else None
    levels = (("warp", place.warp), ("cta", place.cta), ("cluster", place.cluster), ("grid", grid), ("gpu", gpu))
    words = [f"{level} {number}" for level, number in levels if number is not None]
    return ", ".join(f"{word} overlap" if place.overlap and word.startswith("grid") else word for word in words)


def _body(test: Test, thread: Thread) -> list[str]:
    """The rows of a thread: instructions, and labels (which end in ``:``) before the ones they stand for."""
    targets = sorted({op.target for op in thread.body if isinstance(op, Branch)})
    labels = {target: f"L{number}" for number, target in enumerate(targets)}
    rows: list[str] = []
    for index, op in enumerate(thread.body):
        if index in labels:
            rows.append(f"{labels[index]}:")
        rows.append(instruction_text(op, not test.dialect, labels.__getitem__, lambda key: test.objects[key].name))
    if len(thread.body) in labels:
        rows.append(f"{labels[len(thread.body)]}:")
    return rows


def _table(heads: list[str], bodies: list[list[str]]) -> list[str]:
    columns = [[head, *body] for head, body in zip(heads, bodies, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    rows = zip_longest(*columns, fillvalue="")
    return [" " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " ;" for row in rows]


# -- comparison ----------------------------------------------------------------------------------------------------


def _bare(test: Test) -> Test:
    """``test`` without what depends on how it was written down."""
    threads = tuple(replace(t, body=tuple(replace(op, source=_NOWHERE) for op in t.body)) for t in test.threads)
    condition = test.condition
    if condition is not None:
        condition = replace(condition, proposition=_flat(condition.proposition), text="")
    restriction = None if test.filter is None else _flat(test.filter)
    return replace(test, threads=threads, condition=condition, filter=restriction, file="", text="", isa=(8, 5))


def _flat(item: Proposition) -> Proposition:
    """``item`` without conjunctions and disjunctions of one item."""
    match item:
        case Conjunction((single,)) | Disjunction((single,)):
            return _flat(single)
        case Conjunction(items):
            return Conjunction(tuple(map(_flat, items)))
        case Disjunction(items):
            return Disjunction(tuple(map(_flat, items)))
        case Negation(inner):
            return Negation(_flat(inner))
        case _:
            return item
