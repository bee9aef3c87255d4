"""A kernel of a PTX module, launched: one test for each launch, whose threads are the kernel specialised to each.

The way: text -> ``ptx.module`` -> ``inline`` (calls, parameters, special registers) -> ``lower`` (resolved
instructions) -> ``specialize`` (one thread) -> ``program.build``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from math import prod

from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.formats.modules.inline import inline
from ptxmm.formats.modules.launch import NO_TIMEOUT, SAME_VALUE, Launch
from ptxmm.formats.modules.lower import Code, Locate, lower
from ptxmm.formats.modules.mbarriers import separated
from ptxmm.formats.modules.objects import Object, viewed
from ptxmm.formats.modules.prune import pruned
from ptxmm.formats.modules.threads import threads_of
from ptxmm.formats.modules.timeouts import timeouts, without_timeouts
from ptxmm.formats.modules.unwritten import written_first
from ptxmm.formats.modules.variables import variables_of
from ptxmm.program.build import build
from ptxmm.program.condition import comparisons
from ptxmm.program.naming import did_you_mean
from ptxmm.program.source import (
    AddressOf,
    NameTerm,
    RawCondition,
    RawTerm,
    TensorMapValue,
    TestSource,
    ThreadSource,
    Variable,
)
from ptxmm.program.symbols import rename, symbols
from ptxmm.program.test import Allowance, Claims, SameValue, Test
from ptxmm.ptx import module_syntax as ptx
from ptxmm.ptx.ops import Op

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
    allowed: tuple[Allowance, ...] = (),
) -> Test:
    """The test of one ``launch`` of a kernel of ``module``.

    ``file`` and ``text``: what places in results are of; ``locate`` gives the place there for one of ``.loc``,
    ``start`` that of instructions without one, None for that in the module.
    ``isa``: the version of the PTX ISA, None for that of the module. ``allowed``: what ``text`` allows at its lines.

    Raises ``PtxmmError`` with its place: what does not fit together, what can't be modelled.
    """
    found = _launched(module, launch, file, text, locate, isa, start, allowed)
    if not launch.traps or found.claims is None:
        return found
    trapping = _launched(module, launch, file, text, locate, isa, start, allowed, trapping=True)
    return replace(found, claims=replace(found.claims, trapping=trapping))


def _launched(
    module: ptx.Module,
    launch: Launch,
    file: str,
    text: str,
    locate: Locate,
    isa: tuple[int, int] | None,
    start: Span | None,
    allowed: tuple[Allowance, ...],
    trapping: bool = False,
) -> Test:
    kernel = _kernel(module, launch)
    launch = _as_required(kernel, launch)
    flat = inline(module, kernel, launch, trapping)
    variables, keys = variables_of(module, flat, launch, set(_named(launch.condition)))
    others = dict.fromkeys(module.functions, "functions")
    others |= {v.name: "textures, samplers and surfaces" for v in module.variables if v.opaque is not None}
    code = lower(flat, keys, others, isa or module.version, locate, start)
    code = replace(code, body=tuple(rename(op, keys) for op in code.body))
    code, waits, assumed = _assumed(code, launch)
    assumed += (SAME_VALUE,) if SAME_VALUE in launch.assume else ()
    observed = _observed(launch, code.registers)
    code = pruned(code, frozenset().union(*observed))
    try:
        threads, notes, clocks = threads_of(code, launch, observed, variables)
    except PtxmmError as error:
        raise _with_refused(error, code, file, text) from None
    variables, threads = _in_memory(variables, threads, launch)
    placed = [t for t in threads if not t.placement.host]
    remarks = (*flat.remarks, *waits, *notes, *_remarks(launch, placed))
    source = TestSource(
        name=_named_test(kernel.name, launch.name, assumed),
        threads=tuple(threads),
        declarations=_declared(variables, threads, launch),
        condition=launch.condition,
        file=file,
        text=text,
        isa=isa or module.version,
        same_value=_same_value(launch, allowed),
        claims=Claims(
            launch.races,
            launch.robust,
            launch.unroll,
            remarks,
            clocks,
            launch.readings,
            allowed,
            launch.bounds,
            launch.barriers,
            launch.traps,
        ),
    )
    try:
        return build(source)
    except PtxmmError as error:
        if error.line is None and error.hint is not None and "initial values" in error.hint:
            unknown = (v.name for v in variables.values() if v.space in ("shared", "local") and v.initial is None)
            error.hint = "give an initial value: [objects] " + ", ".join(f"{name} = {{ init = 0 }}" for name in unknown)
        raise _placed(error, source, launch) from None


def _named_test(kernel: str, launch: str | None, assumed: Collection[str]) -> str:
    """The name of a test: of its kernel, its launch, and what it assumes, so that no verdict hides that."""
    words = [*filter(None, [launch]), *(f"assuming {name}" for name in assumed)]
    return f"{kernel} ({', '.join(words)})" if words else kernel


def _assumed(code: Code, launch: Launch) -> tuple[Code, list[str], tuple[str, ...]]:
    """``code`` under the assumptions of ``launch``, what the reader of a verdict has to know of waits that give up, and
    the assumptions that leave something out."""
    found = timeouts(code)
    if not found:
        return code, [], ()
    lines = ", ".join(map(str, sorted({code.body[item.pc].source.span.line for item in found})))
    where = f"line {lines}: a wait that takes too long traps"
    if NO_TIMEOUT in launch.assume:
        note = f"{where}: executions in which that happens were left out ({NO_TIMEOUT})"
        return without_timeouts(code, found), [note], (NO_TIMEOUT,)
    return code, [f'{where}; assume = ["{NO_TIMEOUT}"] in the launch leaves out the executions in which it does'], ()


def _same_value(launch: Launch, allowed: tuple[Allowance, ...]) -> SameValue | None:
    """Which writes may race with each other where they write the same value."""
    if SAME_VALUE in launch.assume:
        return SameValue(None)
    return SameValue(frozenset(item.line for item in allowed)) if allowed else None


def _with_refused(error: PtxmmError, code: Code, file: str, text: str) -> PtxmmError:
    """``error`` of a thread with what else is wrong in the kernel; one of the launch specification as it is."""
    if error.file is not None:
        return error
    refused = [found for found, effect in code.refused.values() if effect and found.kind in _WRONG_ANYWHERE]
    others = [found for found in refused if (found.line, found.message) != (error.line, error.message)]
    return together([error, *others]).place(file, text)


def _in_memory(
    variables: dict[str, Object], threads: list[ThreadSource], launch: Launch
) -> tuple[dict[str, Object], list[ThreadSource]]:
    """The variables as the threads use them, and the threads with the names of those that are divided."""
    bodies: list[tuple[Op, ...]] = [thread.body or () for thread in threads]
    for name, item in tuple(variables.items()):
        if item.space == "local" and item.initial is None and written_first(bodies, item):
            variables[name] = replace(item, initial=())
    variables, bodies = separated(variables, bodies, launch)
    threads = [t if t.body is None else replace(t, body=body) for t, body in zip(threads, bodies, strict=True)]
    return viewed(variables, bodies, launch), threads


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
