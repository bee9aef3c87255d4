"""From a litmus test as read to a ``Test``: labels, names, addresses, types and conditions resolved and checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ptxmm.program import propositions
from ptxmm.program.accesses import check_access, check_host, check_mbarriers
from ptxmm.program.condition import Condition
from ptxmm.program.fragments import check_fragments
from ptxmm.program.initial import evaluate
from ptxmm.program.layout import Layout, lay_out
from ptxmm.program.multimem import check_multimem
from ptxmm.program.naming import did_you_mean, error
from ptxmm.program.placement import check_placements
from ptxmm.program.registers import register_types
from ptxmm.program.same_value import with_same_value
from ptxmm.program.shared.windows import check_windows
from ptxmm.program.source import AddressOf, RegisterEntry, TestSource, ThreadSource, Variable
from ptxmm.program.symbols import access, rename, symbols, with_base
from ptxmm.program.tensor_checks import check_tensors, mark_fixed
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.program.unspecified import unknown
from ptxmm.ptx import syntax
from ptxmm.ptx.isa import PREDICATE, S64, names_written, predicate_names, resolve
from ptxmm.ptx.ops import Atomic, BulkCopy, Load, Mapa, Op, ProxyFence, Reg, Store, Sym, Type

_PROXIES = ("surface", "texture", "constant")


def build(source: TestSource) -> Test:
    """Resolve everything in ``source``.

    Raises ``PtxmmError`` with its place for duplicate and unknown names, illegal instructions (PTX ISA 9.7), widths
    that do not fit and accesses that can't be meant. Nothing that was written is ignored.
    """
    ctas = check_placements(source.threads)
    entries = _entries(source)
    declared = {d.name for d in source.declarations}
    if source.dialect:
        declared |= _addresses_taken(source, entries)
    bodies = [
        list(thread.body)
        if thread.body is not None
        else _resolve(thread, declared, source, {e.name for e in items if e.type == PREDICATE})
        for thread, items in zip(source.threads, entries, strict=True)
    ]
    if source.dialect:
        bodies = [_find_locations(b, e, declared) for b, e in zip(bodies, entries, strict=True)]
        source = _declare_locations(source, bodies, entries)
    used = [_used(body, e) for body, e in zip(bodies, entries, strict=True)]
    _reach_across_clusters(source, bodies, used)
    found = lay_out(source, ctas, used, _access_types(bodies))
    found = replace(found, objects=mark_fixed(found.objects, bodies))
    threads = tuple(
        _thread(thread, [rename(op, keys) for op in body], thread_entries, found, source)
        for thread, body, keys, thread_entries in zip(source.threads, bodies, found.names, entries, strict=True)
    )
    check_mbarriers(threads, found.objects)
    check_multimem(threads, found.objects)
    check_windows(threads, found.objects)
    check_tensors(threads, found.objects)
    check_fragments(threads)
    names = propositions.names_of(threads, found.objects)
    condition = None
    if source.condition is not None:
        raw = source.condition
        item = propositions.proposition(raw.proposition, names)
        condition = Condition(raw.kind, item, raw.text)
    filter_ = None if source.filter is None else propositions.proposition(source.filter, names)
    test = Test(
        name=source.name,
        threads=threads,
        objects=found.objects,
        condition=condition,
        locations=tuple(propositions.term(t, names) for t in source.locations),
        filter=filter_,
        description=source.description,
        info=source.info,
        dialect=source.dialect,
        default_model=default_model(threads, found.objects.values()),
        file=source.file,
        text=source.text,
        isa=source.isa,
        claims=source.claims,
    )
    if source.same_value is not None:
        test = with_same_value(test, source.same_value.lines)
    return unknown.mark(test)


def default_model(threads: Iterable[Thread], objects: Iterable[MemoryObject]) -> str:
    """``ptx-7.5`` for tests of the surface, texture or constant proxy, which only that model has, else ``ptx-8.5``."""
    if any(item.proxy in _PROXIES for item in objects):
        return "ptx-7.5"
    for thread in threads:
        for op in thread.body:
            if (isinstance(op, ProxyFence) and op.kind in _PROXIES) or getattr(op, "proxy", "generic") in _PROXIES:
                return "ptx-7.5"
    return "ptx-8.5"


# -- instructions --------------------------------------------------------------------------------------------------


def _resolve(thread: ThreadSource, variables: set[str], source: TestSource, predicates: set[str]) -> list[Op]:
    labels: dict[str, int] = {}
    places: dict[str, int] = {}
    instructions: list[syntax.Instruction] = []
    for statement in thread.statements:
        if isinstance(statement, syntax.Instruction):
            instructions.append(statement)
        elif statement.name in labels:
            line = places[statement.name]
            message = f"a second label `{statement.name}` in {thread.name}; the first is on line {line}"
            raise error(message, statement.span)
        else:
            labels[statement.name] = len(instructions)
            places[statement.name] = statement.span.line
    predicates = predicates | set(predicate_names(instructions))
    return [
        resolve(i, dialect=source.dialect, variables=variables, labels=labels, isa=source.isa, predicates=predicates)
        for i in instructions
    ]


def _addresses_taken(source: TestSource, entries: Sequence[Sequence[RegisterEntry]]) -> set[str]:
    """The locations of the dialect that only ``&x`` or ``P0:r1 = x`` names."""
    found = {e.initial.target.name for items in entries for e in items if isinstance(e.initial, AddressOf)}
    for thread in source.threads:
        for statement in thread.statements:
            if isinstance(statement, syntax.Instruction):
                found |= {o.base.name for o in statement.operands if isinstance(o, syntax.AddressOf)}
    return found


def _find_locations(body: list[Op], entries: Sequence[RegisterEntry], declared: set[str]) -> list[Op]:
    """In the dialect an address that is no register of the thread is a location, declared or not."""
    registers = {name for op in body for name in names_written(op)} | {e.name for e in entries}
    found: list[Op] = []
    for op in body:
        place = access(op)
        if place is not None and isinstance(place.base, Reg) and place.base.name not in registers:
            declared.add(place.base.name)
            op = with_base(op, Sym(place.base.name))
        found.append(op)
    return found


def _declare_locations(
    source: TestSource, bodies: Sequence[Sequence[Op]], entries: Sequence[Sequence[RegisterEntry]]
) -> TestSource:
    """Declare the locations of the dialect that have no declaration, in order of appearance; all are .s64."""
    declarations = [
        replace(d, type=S64) if isinstance(d, Variable) and d.type is None else d for d in source.declarations
    ]
    known = {d.name for d in source.declarations}
    new: dict[str, Variable] = {}
    for items in entries:
        for entry in items:
            if isinstance(entry.initial, AddressOf) and entry.initial.target.name not in known:
                name = entry.initial.target.name
                new.setdefault(name, Variable(name, entry.initial.span, "global", S64))
    registers = {
        name: thread.name
        for thread, body, items in zip(source.threads, bodies, entries, strict=True)
        for name in (*(name for op in body for name in names_written(op)), *(e.name for e in items))
    }
    for body in bodies:
        for op in body:
            for name in symbols(op):
                if name in registers and name not in known:
                    message = f"`{name}` is a register of {registers[name]}, and no register of this thread"
                    raise error(message, op.source.span, hint="a variable needs another name")
                if name not in known:
                    new.setdefault(name, Variable(name, op.source.span, "global", S64))
    return replace(source, declarations=(*declarations, *new.values()))


def _access_types(bodies: Sequence[Sequence[Op]]) -> dict[str, Type]:
    """For ``x = 0`` without a type: that of the first instruction of the file that names x in its address."""
    found: dict[str, tuple[int, int, Type]] = {}
    for body in bodies:
        for op in body:
            place = access(op)
            if place is None or not isinstance(place.base, Sym):
                continue
            type_ = op.type if isinstance(op, Load | Store | Atomic) else S64
            entry = (op.source.span.line, op.source.span.column, type_)
            name = place.base.name
            if name not in found or entry[:2] < found[name][:2]:
                found[name] = entry
    return {name: entry[2] for name, entry in found.items()}


# -- threads -------------------------------------------------------------------------------------------------------


def _entries(source: TestSource) -> list[list[RegisterEntry]]:
    """For each thread its declarations and initial values, from the initial state and from its block."""
    found: dict[str, list[RegisterEntry]] = {t.name: [] for t in source.threads}
    for entry in source.registers:
        if entry.thread not in found:
            hint = did_you_mean(entry.thread, list(found))
            raise error(f"there is no thread `{entry.thread}`", entry.span, hint=hint)
        found[entry.thread].append(entry)
    return [[*found[t.name], *t.registers] for t in source.threads]


def _reach_across_clusters(source: TestSource, bodies: Sequence[Sequence[Op]], used: Sequence[set[str]]) -> None:
    """A multicast, and ``mapa``, reach a ``.shared`` variable in every CTA of the cluster: all of them have it."""
    shared = {d.name for d in source.declarations if isinstance(d, Variable) and d.space == "shared"}
    for thread, body, own in zip(source.threads, bodies, list(map(set, used)), strict=True):
        names: set[str] = set()
        for op in body:
            if isinstance(op, BulkCopy) and op.mask is not None:
                names.update(symbols(op))
            elif isinstance(op, Mapa):
                names |= own
        place = thread.placement
        if place.host or place.cluster is None or not names & shared:
            continue
        for other, known in zip(source.threads, used, strict=True):
            there = other.placement
            if not there.host and (there.gpu, there.grid, there.cluster) == (place.gpu, place.grid, place.cluster):
                known |= names & shared


def _used(body: Sequence[Op], entries: Sequence[RegisterEntry]) -> set[str]:
    names = {name for op in body for name in symbols(op)}
    return names | {e.initial.target.name for e in entries if isinstance(e.initial, AddressOf)}


def _thread(
    thread: ThreadSource, body: list[Op], entries: Sequence[RegisterEntry], found: Layout, source: TestSource
) -> Thread:
    variables = [item.name for item in found.objects.values()]
    types = register_types(thread, body, entries, source.dialect, variables, source.isa)
    for op in body:
        check_host(op, thread.placement)
        check_access(op, thread.placement, found.objects)
    initial: dict[str, int] = {}
    for entry in entries:
        if entry.initial is None:
            continue
        value = evaluate(entry.initial, types[entry.name], found.objects)
        if value:
            initial[entry.name] = value
    return Thread(thread.name, thread.placement, tuple(body), types, initial)
