"""A kernel of a PTX module, launched: its instructions with everything put in that is the same for all its threads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.modules.evaluate import Half
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.inline import Flat
from ptxmm.formats.modules.launch import (
    ACTIVE_TOGETHER,
    ARRIVES_AGAIN,
    DESTINATION_CTA,
    ELECT_FIRST,
    EXIT_WAITS,
    NO_TIMEOUT,
    SAME_VALUE,
    WARP_COPY,
    WARP_WAIT,
    WGMMA_SYNC,
    Launch,
)
from ptxmm.formats.modules.lower import Code, Locate, lower
from ptxmm.formats.modules.names import matching, spoken, titles
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.special import workspace_halves
from ptxmm.formats.modules.timeouts import timeouts, without_timeouts
from ptxmm.formats.modules.variables import variables_of
from ptxmm.program.condition import comparisons
from ptxmm.program.naming import did_you_mean
from ptxmm.program.source import AddressOf, Initial, NameTerm, RawCondition, RawTerm
from ptxmm.program.symbols import rename
from ptxmm.program.test import Allowance, SameValue
from ptxmm.ptx import module_syntax as ptx
from ptxmm.ptx.isa import names_read
from ptxmm.ptx.ops import Sym

_NAMED = (
    SAME_VALUE, DESTINATION_CTA, ELECT_FIRST, WGMMA_SYNC, WARP_COPY, WARP_WAIT, EXIT_WAITS, ARRIVES_AGAIN,
    ACTIVE_TOGETHER,
)  # fmt: skip
"""The assumptions that every verdict names."""
_NOWHERE = Span(1, 1, 2)


class Reading(Struct, frozen=True):
    """How a module is read. ``locate`` gives the place that results name for one of ``.loc``, ``start`` that of
    instructions without one, None for that in the module; ``isa``: the version of the PTX ISA, None for that of the
    module."""

    locate: Locate
    isa: tuple[int, int] | None = None
    start: Span | None = None


class Kernel(Struct, frozen=True):
    """The kernel ``name`` of a ``grid`` of its ``launch``: all that it may name, by name, its instructions, what the
    reader of a verdict has to know of them, and the assumptions that the verdict rests on; ``allowed``: what its source
    allows at its lines.

    Variables of one name are the same ones in all kernels of a launch: those in ``.global`` and ``.const`` memory are
    one each, the others one for each CTA or thread. ``workspace``: what ``%envreg1`` and ``%envreg2`` hold; ``isa``:
    the version of PTX."""

    name: str
    launch: Launch
    grid: Grid
    variables: dict[str, Object]
    code: Code
    remarks: tuple[str, ...]
    assumed: tuple[str, ...]
    allowed: tuple[Allowance, ...] = ()
    workspace: Mapping[str, Half] = {}
    isa: tuple[int, int] = (8, 5)

    @property
    def same_value(self) -> SameValue | None:
        """Which of its writes may race with each other where they write the same value."""
        return same_value(self.launch, self.allowed)


def same_value(launch: Launch, allowed: tuple[Allowance, ...]) -> SameValue | None:
    """Which writes may race with each other where they write the same value."""
    if SAME_VALUE in launch.assume:
        return SameValue(None)
    return SameValue(frozenset(item.line for item in allowed)) if allowed else None


def kernel_of(
    module: ptx.Module,
    launch: Launch,
    grid: Grid,
    entry: ptx.Function,
    flats: Sequence[Flat],
    asked: Collection[str],
    how: Reading,
    allowed: tuple[Allowance, ...],
) -> Kernel:
    """The kernel ``entry`` of ``module`` for ``grid``. ``flats``: those of all grids of the launch; ``asked``: the
    variables that the condition names. Raises ``PtxmmError``."""
    flat = flats[grid.number]
    others = {name for one in flats for name in one.variables} if len(flats) > 1 else set()
    variables, keys = variables_of(module, flat, launch, grid, asked, others)
    nothing = dict.fromkeys(module.functions, "functions")
    nothing |= {v.name: "textures, samplers and surfaces" for v in module.variables if v.opaque is not None}
    isa = how.isa or module.version
    code = lower(flat, keys, nothing, isa, how.locate, how.start)
    code = replace(code, body=tuple(rename(op, keys) for op in code.body))
    code, waits, assumed = _assumed(code, launch)
    assumed += tuple(name for name in _NAMED if name in launch.assume)
    workspace = workspace_halves(variables, {name for op in code.body for name in names_read(op)})
    remarks = (*flat.remarks, *waits)
    title = titles([name for name, f in module.functions.items() if f.entry])[entry.name]
    return Kernel(title, launch, grid, variables, code, remarks, assumed, allowed, workspace, isa)


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


def as_required(kernel: ptx.Function, launch: Launch, grid: Grid) -> Grid:
    """``grid`` with the cluster that the kernel asks for. Raises ``PtxmmError`` where it asks for another launch
    (PTX ISA 11.4)."""
    wanted = {key: (*sizes, 1, 1)[:3] for key, sizes in kernel.directives.items() if sizes}
    shown = " x ".join(map(str, grid.block))
    block, most = wanted.get("reqntid"), wanted.get("maxntid")
    if block is not None and block != grid.block:
        message = f"`{spoken(kernel.name)}` is for CTAs of {' x '.join(map(str, block))} threads, not {shown}"
        raise launch.error(grid.spans["block"], message)
    if most is not None and grid.size > prod(most):
        message = f"`{spoken(kernel.name)}` is for CTAs of at most {prod(most)} threads, not {grid.size}"
        raise launch.error(grid.spans["block"], message)
    x, y, z = wanted.get("reqnctapercluster", (0, 0, 0))
    if not x:
        return grid
    cluster = grid.spans["cluster"]
    if grid.cluster not in (None, (x, y, z)):
        raise launch.error(cluster, f"`{spoken(kernel.name)}` is for clusters of {x} x {y} x {z} CTAs")
    if any(g % c for g, c in zip(grid.grid, (x, y, z), strict=True)):
        raise launch.error(cluster, f"the grid is not made of whole clusters of {x} x {y} x {z} CTAs")
    return replace(grid, cluster=(x, y, z))


def entry_of(module: ptx.Module, launch: Launch, grid: Grid) -> ptx.Function:
    """The entry that is launched as ``grid``. Raises ``PtxmmError``."""
    entries = {name: f for name, f in module.functions.items() if f.entry and f.body is not None}
    if grid.kernel is None:
        if len(entries) == 1:
            return next(iter(entries.values()))
        wrong = "no kernel" if not entries else f"{len(entries)} kernels"
        shown = [f'"{name}"' for name in titles(entries).values()]
        hint = "say which: kernel = " + " or ".join(shown[:3]) if shown else None
        raise launch.error(_NOWHERE, f"the module has {wrong}", hint=hint)
    found = matching(grid.kernel, entries)
    if len(found) == 1:
        return entries[found[0]]
    message = f"the module has no kernel `{grid.kernel}`"
    called = titles(entries)
    hint = did_you_mean(grid.kernel, list(called.values())) or f"its kernels: {', '.join(list(called.values())[:5])}"
    if found:
        message = f"{len(found)} kernels are called `{grid.kernel}`"
        hint = "say which: " + " or ".join(called[name] for name in found[:3])
    raise launch.error(grid.spans["kernel"], message, "name", hint)


def with_names(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """``kernel`` with other ``names`` for its variables."""
    if not names.keys() & kernel.variables.keys():
        return kernel
    keys = {name: names.get(name, name) for name in kernel.variables}
    variables = {}
    for name, item in kernel.variables.items():
        if item.initial is not None:
            item = replace(item, initial=tuple(_pointing(value, names) for value in item.initial))
        variables[keys[name]] = replace(item, name=keys[name])
    body = tuple(rename(op, keys) for op in kernel.code.body)
    workspace = {
        name: Half(Sym(keys[half.place.name]), half.high, half.placed) for name, half in kernel.workspace.items()
    }
    return replace(kernel, variables=variables, code=replace(kernel.code, body=body), workspace=workspace)


def _pointing(value: Initial, names: Mapping[str, str]) -> Initial:
    """An initial value with the new name of what it points to."""
    if isinstance(value, AddressOf) and value.target.name in names:
        return replace(value, target=replace(value.target, name=names[value.target.name]))
    return value


def named(condition: RawCondition | None) -> Iterator[str]:
    """The variables that a condition names."""
    for term in terms(condition):
        if isinstance(term, NameTerm) and term.thread is None:
            yield term.name
        elif isinstance(term, AddressOf):
            yield term.target.name


def observed(kernel: Kernel) -> frozenset[str]:
    """The registers that the condition of a kernel names."""
    every = (term for term in terms(kernel.launch.condition) if isinstance(term, NameTerm) and term.thread is not None)
    return frozenset(term.name for term in every) & kernel.code.registers.keys()


def terms(condition: RawCondition | None) -> Iterator[RawTerm]:
    """The terms of a condition."""
    for found in comparisons(None if condition is None else condition.proposition):
        yield from (found.left, found.right)
