"""A kernel of a PTX module, launched: one test for each launch, whose threads are the kernel specialised to each.

The way: text -> ``ptx.module`` -> ``inline`` (calls, parameters, special registers) -> ``lower`` (resolved
instructions) -> ``specialize`` (one thread) -> ``program.build``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import prod

from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.formats.modules.evaluate import Known
from ptxmm.formats.modules.flow import Flow, analyse
from ptxmm.formats.modules.inline import inline
from ptxmm.formats.modules.lanes import check_lanes
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.lower import Code, Locate, lower
from ptxmm.formats.modules.mbarriers import separated
from ptxmm.formats.modules.objects import Object, viewed
from ptxmm.formats.modules.prune import pruned
from ptxmm.formats.modules.special import CLOCKS, cluster_of, special_values, workspace_halves
from ptxmm.formats.modules.specialize import Residue, specialize
from ptxmm.formats.modules.unwritten import shown, with_unwritten, written_first
from ptxmm.formats.modules.variables import variables_of
from ptxmm.program.build import build
from ptxmm.program.condition import comparisons
from ptxmm.program.naming import did_you_mean
from ptxmm.program.placement import WARP_SIZE
from ptxmm.program.source import (
    AddressOf,
    NameTerm,
    RawCondition,
    RawTerm,
    RegisterEntry,
    TensorMapValue,
    TestSource,
    ThreadSource,
    Variable,
)
from ptxmm.program.symbols import rename, symbols
from ptxmm.program.test import Claims, Placement, Test
from ptxmm.ptx import module_syntax as ptx
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.parser import parse_statements

_NOWHERE = Span(1, 1, 2)
_LISTED = 8


_WRONG_ANYWHERE = frozenset(("isa", "syntax", "type"))
"""The kinds of errors in instructions that are told even of those that no thread comes to, if there are others."""


def launched(
    module: ptx.Module,
    launch: Launch,
    *,
    file: str,
    text: str,
    locate: Locate,
    isa: tuple[int, int] | None = None,
    start: Span | None = None,
) -> Test:
    """The test of one ``launch`` of a kernel of ``module``.

    ``file`` and ``text``: what places in results are of; ``locate`` gives the place there for one of ``.loc``,
    ``start`` that of instructions without one, None for that in the module.
    ``isa``: the version of the PTX ISA, None for that of the module.

    Raises ``PtxmmError`` with its place: what does not fit together, what can't be modelled.
    """
    kernel = _kernel(module, launch)
    launch = _as_required(kernel, launch)
    flat = inline(module, kernel, launch)
    variables, keys = variables_of(module, flat, launch, set(_named(launch.condition)))
    others = dict.fromkeys(module.functions, "functions")
    others |= {v.name: "textures, samplers and surfaces" for v in module.variables if v.opaque is not None}
    code = lower(flat, keys, others, isa or module.version, locate, start)
    code = replace(code, body=tuple(rename(op, keys) for op in code.body))
    observed = _observed(launch, code.registers)
    code = pruned(code, frozenset().union(*observed))
    try:
        threads, notes, clocks = _threads(code, launch, observed, variables)
    except PtxmmError as error:
        if error.file is not None:
            raise  # of the launch specification
        refused = [found for found, effect in code.refused.values() if effect and found.kind in _WRONG_ANYWHERE]
        others_ = [found for found in refused if (found.line, found.message) != (error.line, error.message)]
        raise together([error, *others_]).place(file, text) from None
    for name, item in tuple(variables.items()):
        if item.space == "local" and item.initial is None and written_first([t.body or () for t in threads], item):
            variables[name] = replace(item, initial=())
    variables, bodies = separated(variables, [thread.body or () for thread in threads], launch)
    threads = [t if t.body is None else replace(t, body=body) for t, body in zip(threads, bodies, strict=True)]
    placed = [t for t in threads if not t.placement.host]
    variables = viewed(variables, bodies, launch)
    name = kernel.name if launch.name is None else f"{kernel.name} ({launch.name})"
    source = TestSource(
        name=name,
        threads=tuple(threads),
        declarations=_declared(variables, threads, launch),
        condition=launch.condition,
        file=file,
        text=text,
        isa=isa or module.version,
        claims=Claims(
            launch.races,
            launch.robust,
            launch.unroll,
            (*flat.remarks, *notes, *_remarks(launch, placed)),
            partial=clocks,
        ),
    )
    try:
        return build(source)
    except PtxmmError as error:
        if error.line is None and error.hint is not None and "initial values" in error.hint:
            unknown = (v.name for v in variables.values() if v.space in ("shared", "local") and v.initial is None)
            error.hint = "give an initial value: [objects] " + ", ".join(f"{name} = {{ init = 0 }}" for name in unknown)
        raise _placed(error, source, launch) from None


def _as_required(kernel: ptx.Function, launch: Launch) -> Launch:
    """``launch`` with the cluster that the kernel asks for. Raises ``PtxmmError`` where it asks for another launch
    (PTX ISA 11.4)."""
    wanted = {key: (*sizes, 1, 1)[:3] for key, sizes in kernel.directives.items() if sizes}
    shown = " x ".join(map(str, launch.block))
    block, most = wanted.get("reqntid"), wanted.get("maxntid")
    if block is not None and block != launch.block:
        raise launch.error(
            "block", f"`{kernel.name}` is for CTAs of {' x '.join(map(str, block))} threads, not {shown}"
        )
    if most is not None and launch.size > prod(most):
        raise launch.error("block", f"`{kernel.name}` is for CTAs of at most {prod(most)} threads, not {launch.size}")
    x, y, z = wanted.get("reqnctapercluster", (0, 0, 0))
    if not x:
        return launch
    if launch.cluster not in (None, (x, y, z)):
        raise launch.error("cluster", f"`{kernel.name}` is for clusters of {x} x {y} x {z} CTAs")
    if any(g % c for g, c in zip(launch.grid, (x, y, z), strict=True)):
        raise launch.error("cluster", f"the grid is not made of whole clusters of {x} x {y} x {z} CTAs")
    return replace(launch, cluster=(x, y, z))


def _placed(error: PtxmmError, source: TestSource, launch: Launch) -> PtxmmError:
    """``error`` with its file: what is not wrong with an instruction is wrong with the launch."""
    places = {(op.source.span.line, op.source.span.column) for thread in source.threads for op in thread.body or ()}
    if (error.line, error.column) in places:
        return error.place(source.file, source.text)
    return error.place(launch.file, launch.text)


def _kernel(module: ptx.Module, launch: Launch) -> ptx.Function:
    """The entry that is launched."""
    entries = {name: f for name, f in module.functions.items() if f.entry and f.body is not None}
    if launch.kernel is None:
        if len(entries) == 1:
            return next(iter(entries.values()))
        wrong = "no kernel" if not entries else f"{len(entries)} kernels"
        hint = None if not entries else "say which: kernel = " + " or ".join(f'"{name}"' for name in list(entries)[:3])
        raise launch.error(_NOWHERE, f"the module has {wrong}", hint=hint)
    if launch.kernel in entries:
        return entries[launch.kernel]
    mangled = re.compile(rf"_Z(?:N?.*?[A-Za-z_])?{len(launch.kernel)}{re.escape(launch.kernel)}")
    found = [f for name, f in entries.items() if mangled.match(name)]
    if len(found) == 1:
        return found[0]
    message = f"the module has no kernel `{launch.kernel}`"
    hint = did_you_mean(launch.kernel, list(entries)) or ("its kernels: " + ", ".join(list(entries)[:5]))
    if found:
        message = f"{len(found)} kernels are called `{launch.kernel}`"
        hint = "give the mangled name: " + " or ".join(f.name for f in found[:3])
    raise launch.error("kernel", message, "name", hint)


# -- variables -----------------------------------------------------------------------------------------------------


def _declared(variables: dict[str, Object], threads: list[ThreadSource], launch: Launch) -> tuple[Variable, ...]:
    """Declarations of what the threads, the condition or other declarations name, and of all objects of the launch."""
    wanted = {item.name for item in launch.objects} & variables.keys()
    for thread in threads:
        for op in thread.body or ():
            wanted.update(symbols(op))
    wanted |= set(_named(launch.condition)) & variables.keys()
    waiting = list(wanted)
    while waiting:
        for value in variables[waiting.pop()].initial or ():
            name = value.target.name if isinstance(value, AddressOf | TensorMapValue) else None
            if name is not None and name in variables and name not in wanted:
                wanted.add(name)
                waiting.append(name)
    for name in wanted:
        if variables[name].count == 0:
            message = f"`{name}` is dynamic shared memory, of which this launch has none"
            raise launch.error("shared", message, hint="say how many bytes: shared = 1024")
    return tuple(_declaration(v, v.space) for name, v in variables.items() if name in wanted)


def _declaration(item: Object, space: str) -> Variable:
    initial = item.initial
    if initial is not None and not initial and space in ("global", "const"):
        initial = None  # zero
    return Variable(item.name, item.span, space, item.type, item.count, initial, None, item.alignment)


def _named(condition: RawCondition | None) -> Iterator[str]:
    """The variables that a condition names."""
    for term in _terms(condition):
        if isinstance(term, NameTerm) and term.thread is None:
            yield term.name
        elif isinstance(term, AddressOf):
            yield term.target.name


def _terms(condition: RawCondition | None) -> Iterator[RawTerm]:
    """The terms of a condition."""
    for found in comparisons(None if condition is None else condition.proposition):
        yield from (found.left, found.right)


# -- threads -------------------------------------------------------------------------------------------------------


def _threads(
    code: Code, launch: Launch, observed: Sequence[frozenset[str]], variables: dict[str, Object]
) -> tuple[list[ThreadSource], list[str], bool]:
    """The threads, what the reader of a verdict has to know of them, and whether some depend on clocks. ``variables``
    gets those that registers without a value are read from."""
    flows = {names: analyse(code.body, names) for names in set(observed)}
    running = Counter(cta for cta, _ in launch.threads)
    lanes: dict[tuple[int, int], list[int]] = {}
    for cta, thread in launch.threads:
        lanes.setdefault((cta, thread // WARP_SIZE), []).append(thread % WARP_SIZE)
    found: list[ThreadSource] = []
    used = {name for op in code.body for name, _ in uses(op)}
    workspace = workspace_halves(variables, used)
    unwritten: dict[str, None] = {}
    clocks = False
    module_names = frozenset(variables)
    for number, (cta, thread) in enumerate(launch.threads):
        values = special_values(launch, cta, thread)
        known: dict[str, Known] = {name: value for name, value in values.items() if name in used}
        known.update(workspace)
        residue, timed = _timeless(code, flows[observed[number]], known, observed[number], variables)
        clocks = clocks or timed
        made = with_unwritten(residue.body, code.registers, observed[number], module_names)
        unwritten |= dict.fromkeys(made.variables)
        variables.update((item.name, item) for item in made.variables.values())
        warp = thread // WARP_SIZE
        whole = running[cta] == launch.size
        check_lanes(made.body, lanes[cta, warp], min(WARP_SIZE, launch.size - warp * WARP_SIZE), whole)
        names = dict.fromkeys(name for op in made.body for name, _ in (*definitions(op), *uses(op)))
        types = {**code.registers, **made.registers}
        registers = tuple(RegisterEntry(f"P{number}", name, _NOWHERE, types[name]) for name in names)
        cluster, rank = cluster_of(launch, cta)
        placement = Placement(
            cluster=cluster if launch.cluster is not None else None,
            cta=rank if launch.cluster is not None else cta,
            warp=warp,
        )
        span = launch.spans["threads"]
        found.append(ThreadSource(f"P{number}", span, placement, (), registers, made.body))
    for name, (text, span) in launch.host.items():
        try:
            statements = tuple(parse_statements(text, span.line, span.column))
        except PtxmmError as error:
            raise error.place(launch.file, launch.text) from None
        found.append(ThreadSource(name, span, Placement(host=True), statements))
    early = sorted({shown(name) for name in unwritten})
    notes = [f"%{name} may be read before it is written: its value is unknown then" for name in early]
    if clocks:
        notes.append("a clock decides what is executed: only executions in which no time passes were looked at")
    return found, notes, clocks


def _timeless(
    code: Code, flow: Flow, known: dict[str, Known], observed: frozenset[str], variables: dict[str, Object]
) -> tuple[Residue, bool]:
    """What is left of the kernel for a thread, and whether it depends on clocks; then all of them are 0."""
    clocks = {name for name in known if name.removeprefix("sreg ") in CLOCKS}
    if not clocks:
        return specialize(code, flow, known, observed, variables), False
    try:
        rest = {name: value for name, value in known.items() if name not in clocks}
        return specialize(code, flow, rest, observed, variables), False
    except PtxmmError:
        return specialize(code, flow, known, observed, variables), True


def _observed(launch: Launch, registers: Collection[str]) -> list[frozenset[str]]:
    """For each thread those of ``registers`` that the condition names."""
    found: list[set[str]] = [set() for _ in launch.threads]
    for term in _terms(launch.condition):
        if isinstance(term, NameTerm) and term.thread is not None and term.name in registers:
            number = term.thread.removeprefix("P")
            if number.isdigit() and int(number) < len(found):
                found[int(number)].add(term.name)
    return list(map(frozenset, found))


def _remarks(launch: Launch, threads: list[ThreadSource]) -> Iterator[str]:
    """Which threads run, where that is not all."""
    if len(threads) == launch.ctas * launch.size:
        return
    words = [f"P{n} is thread {thread} of CTA {cta}" for n, (cta, thread) in enumerate(launch.threads[:_LISTED])]
    more = ", ..." if len(launch.threads) > _LISTED else ""
    every = launch.ctas * launch.size
    yield f"{len(launch.threads)} of {every} threads run: {', '.join(words)}{more}"
