"""The threads of a launch: the kernel specialised to each, and what the reader of a verdict has to know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.modules.evaluate import Known
from ptxmm.formats.modules.flow import Flow, analyse
from ptxmm.formats.modules.lanes import check_lanes
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.special import CLOCKS, cluster_of, special_values, workspace_halves
from ptxmm.formats.modules.specialize import Residue, specialize
from ptxmm.formats.modules.unwritten import Unwritten, shown, with_unwritten
from ptxmm.program.placement import WARP_SIZE
from ptxmm.program.source import RegisterEntry, ThreadSource
from ptxmm.program.test import Placement
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.parser import parse_statements

_NOWHERE = Span(1, 1, 2)


def threads_of(
    code: Code, launch: Launch, observed: Sequence[frozenset[str]], variables: dict[str, Object]
) -> tuple[list[ThreadSource], list[str], bool]:
    """The threads, what the reader of a verdict has to know of them, and whether some depend on clocks. ``variables``
    gets those that registers without a value are read from. Raises ``PtxmmError``."""
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
        size = min(WARP_SIZE, launch.size - thread // WARP_SIZE * WARP_SIZE)
        check_lanes(made.body, lanes[cta, thread // WARP_SIZE], size, running[cta] == launch.size)
        found.append(_thread(code, launch, number, made))
    early = sorted({shown(name) for name in unwritten})
    notes = [f"%{name} may be read before it is written: its value is unknown then" for name in early]
    if clocks:
        notes.append("a clock decides what is executed: only executions in which no time passes were looked at")
    return [*found, *_of_host(launch)], notes, clocks


def _thread(code: Code, launch: Launch, number: int, made: Unwritten) -> ThreadSource:
    cta, thread = launch.threads[number]
    types = {**code.registers, **made.registers}
    names = dict.fromkeys(name for op in made.body for name, _ in (*definitions(op), *uses(op)))
    registers = tuple(RegisterEntry(f"P{number}", name, _NOWHERE, types[name]) for name in names)
    cluster, rank = cluster_of(launch, cta)
    whole = launch.cluster is None
    placement = Placement(cluster=None if whole else cluster, cta=cta if whole else rank, warp=thread // WARP_SIZE)
    return ThreadSource(f"P{number}", launch.spans["threads"], placement, (), registers, made.body)


def _of_host(launch: Launch) -> Iterator[ThreadSource]:
    for name, (text, span) in launch.host.items():
        try:
            statements = tuple(parse_statements(text, span.line, span.column))
        except PtxmmError as error:
            raise error.place(launch.file, launch.text) from None
        yield ThreadSource(name, span, Placement(host=True), statements)


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
