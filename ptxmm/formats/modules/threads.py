"""The threads of a launch: the kernel specialised to each, and what the reader of a verdict has to know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.modules.evaluate import Known
from ptxmm.formats.modules.flow import Flow, analyse
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.formats.modules.lanes import with_lanes
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.rows import Rows, rows
from ptxmm.formats.modules.special import CLOCKS, cluster_of, special_values
from ptxmm.formats.modules.specialize import Residue, settled, specialize
from ptxmm.formats.modules.unchanged import Unchanged
from ptxmm.formats.modules.unwritten import Unwritten, shown, with_unwritten
from ptxmm.program.placement import WARP_SIZE
from ptxmm.program.source import RegisterEntry, ThreadSource
from ptxmm.program.test import Placement
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, names_read, uses
from ptxmm.ptx.parser import parse_statements

_NOWHERE = Span(1, 1, 2)


def threads_of(
    kernel: Kernel,
    code: Code,
    observed: Sequence[frozenset[str]],
    variables: dict[str, Object],
    first: int,
    memory: Unchanged | None = None,
) -> tuple[list[ThreadSource], list[str], bool]:
    """The threads of the grid of ``kernel``, the first of which is P``first``, what the reader of a verdict has to know
    of them, and whether some depend on clocks. ``code``: what counts of the instructions of the kernel; ``observed``:
    for each thread the registers whose final values count; ``variables``: all that there are, with those that registers
    without a value are read from afterwards; ``memory``: what no thread of the launch changes. Raises
    ``PtxmmError``."""
    grid = kernel.grid
    running = Counter(cta for cta, _ in grid.threads)
    lanes: dict[tuple[int, int], list[int]] = {}
    for cta, thread in grid.threads:
        lanes.setdefault((cta, thread // WARP_SIZE), []).append(thread % WARP_SIZE)
    found: list[ThreadSource] = []
    special = Specializing(kernel, code, variables, memory)
    unwritten: dict[str, None] = {}
    clocks = False
    taken = frozenset(variables)
    for number, (cta, thread) in enumerate(grid.threads):
        residue, timed = special.specialized(cta, thread, observed[number])
        clocks = clocks or timed
        size = min(WARP_SIZE, grid.size - thread // WARP_SIZE * WARP_SIZE)
        body = with_lanes(residue.body, lanes[cta, thread // WARP_SIZE], size, running[cta] == grid.size)
        made = with_unwritten(body, code.registers, observed[number], taken)
        unwritten |= dict.fromkeys(made.variables)
        variables.update((item.name, item) for item in made.variables.values())
        found.append(_thread(code, grid, f"P{first + number}", cta, thread, made))
    early = sorted({shown(name) for name in unwritten})
    notes = [f"%{name} may be read before it is written: its value is unknown then" for name in early]
    if clocks:
        notes.append("a clock decides what is executed: only executions in which no time passes were looked at")
    return found, notes, clocks


def _thread(code: Code, grid: Grid, name: str, cta: int, thread: int, made: Unwritten) -> ThreadSource:
    types = {**code.registers, **made.registers}
    names = dict.fromkeys(name for op in made.body for name, _ in (*definitions(op), *uses(op)))
    registers = tuple(RegisterEntry(name, register, _NOWHERE, types[register]) for register in names)
    cluster, rank = cluster_of(grid, cta)
    whole = grid.cluster is None
    placement = Placement(
        gpu=grid.gpu,
        grid=grid.number,
        cluster=None if whole else cluster,
        cta=cta if whole else rank,
        warp=thread // WARP_SIZE,
        overlap=grid.after == "programmatic",
    )
    return ThreadSource(name, grid.spans["threads"], placement, (), registers, made.body)


def host_threads(launch: Launch) -> Iterator[ThreadSource]:
    """The threads of the host. Raises ``PtxmmError``."""
    for name, (text, span) in launch.host.items():
        try:
            statements = tuple(parse_statements(text, span.line, span.column))
        except PtxmmError as error:
            raise error.place(launch.file, launch.text) from None
        yield ThreadSource(name, span, Placement(host=True), statements)


class Specializing:
    """A kernel that is specialised to one thread after the other: ``code`` of it; ``variables``: all that it may
    name; ``memory``: what nobody changes."""

    def __init__(
        self, kernel: Kernel, code: Code, variables: dict[str, Object], memory: Unchanged | None = None
    ) -> None:
        matrices = any(isinstance(op, ops.LoadMatrix | ops.StoreMatrix | ops.Wgmma) for op in code.body)
        self.memory = None if matrices else memory  # lanes of a warp tell each other by the pcs what they access
        self.code, self.grid, self.workspace, self.variables = code, kernel.grid, kernel.workspace, variables
        self.used = {name for op in code.body for name in names_read(op)}
        self.clocks = {f"sreg {name}" for name in CLOCKS} & self.used
        self.flows: dict[frozenset[str], Flow] = {}
        self.named: dict[tuple[int, int, frozenset[str], bool], Rows] = {}

    def specialized(self, cta: int, thread: int, names: frozenset[str]) -> tuple[Residue, bool]:
        """What is left for a thread whose registers ``names`` count in the end, and whether it depends on clocks; then
        all of them are 0."""
        if not self.clocks:
            return self._specialized(cta, thread, names, True), False
        try:
            return self._specialized(cta, thread, names, False), False
        except PtxmmError:
            return self._specialized(cta, thread, names, True), True

    def _specialized(self, cta: int, thread: int, names: frozenset[str], timed: bool) -> Residue:
        lane = thread % WARP_SIZE

        def lanes(number: int) -> Rows | None:
            other = thread - lane + number
            return self._rows(cta, other, names, timed) if other < self.grid.size else None

        known = self._known(cta, thread, timed)
        if self.memory is not None:
            wanted = settled(
                self.code, self._flow(names), known, names, self.variables, self.memory.fetch(self.code.body)
            )
            if wanted is not None:
                flow, fetch = analyse(wanted.body, names), self.memory.fetch(wanted.body)
                return specialize(wanted, flow, known, names, self.variables, fetch=fetch)
        return specialize(self.code, self._flow(names), known, names, self.variables, lane, lanes)

    def _flow(self, names: frozenset[str]) -> Flow:
        if names not in self.flows:
            self.flows[names] = analyse(self.code.body, names)
        return self.flows[names]

    def _known(self, cta: int, thread: int, timed: bool) -> dict[str, Known]:
        """What the launch says of registers; of clocks only if they are ``timed``."""
        wanted = self.used if timed else self.used - self.clocks
        values = special_values(self.grid, cta, thread)
        return {**{name: value for name, value in values.items() if name in wanted}, **self.workspace}

    def _rows(self, cta: int, thread: int, names: frozenset[str], timed: bool) -> Rows:
        """The rows of matrices that a thread names, which may be another one than runs."""
        key = cta, thread, names, timed
        if key not in self.named:
            self.named[key] = rows(self.code, self._flow(names), self._known(cta, thread, timed), self.variables)
        return self.named[key]
