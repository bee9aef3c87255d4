"""What the warps of a launch did when, in one execution: for a picture.

Time is counted in instructions: those that several warps execute together are one step, and steps in which nothing
synchronizes, or accesses shared memory or tensor memory, are left out. Warps that do the same are one row, and so are
CTAs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.order.history import Event
from ptxmm.whole.order.trace import READ, TENSOR

MOST_ROWS, MOST_COLUMNS = 24, 110
"""So many rows of warps and columns of steps are drawn."""
Mark = Literal["arrive", "copy", "commit", "fence", "read", "write", "product"]
_MARKS: Mapping[str, Mark] = {
    "arrive": "arrive", "copy": "copy", "commit": "commit", "fence": "fence", "proxy": "fence",
    "read": "read", "write": "write", "product": "product",
}  # fmt: skip


class Span(Struct, frozen=True):
    """Something from one column to another, the last included: a wait of warps, or a phase of a barrier; ``text`` says
    what, ``line`` where it stands (0: nowhere)."""

    first: int
    last: int
    text: str
    line: int = 0


class Tick(Struct, frozen=True):
    """Something that warps do in a column."""

    column: int
    mark: Mark
    text: str
    line: int


class Row(Struct, frozen=True):
    """The ``warps`` of CTAs that do the same: their ``name``, when they wait, and what they do; the column in which
    they end, if they do."""

    name: str
    waits: tuple[Span, ...]
    ticks: tuple[Tick, ...]
    ends: int | None


class Group(Struct, frozen=True):
    """CTAs that do the same: their ``name``, the ``rows`` of their warps, and the phases of their barriers and
    mbarriers, by the names of these."""

    name: str
    rows: tuple[Row, ...]
    phases: tuple[tuple[str, tuple[Span, ...]], ...]


class Timeline(Struct, frozen=True):
    """``columns``: how many there are; ``groups`` of CTAs; for each race the (group, row, column) of its two accesses;
    ``left_out``: what is not drawn, in words."""

    columns: int
    groups: tuple[Group, ...]
    races: tuple[tuple[tuple[int, int, int], tuple[int, int, int]], ...]
    left_out: tuple[str, ...]


Access = tuple[int, int]
"""The number of a row of the trace, and the thread."""


class _Done(NamedTuple):
    """What a warp does: in which step, what, with what and which phase of it, at which instruction."""

    step: int
    kind: str
    name: str
    number: int
    at: int


def timeline(machine: Machine, races: Iterable[tuple[Access, Access]] = ()) -> Timeline:
    """The timeline of an execution, of which the history has been kept."""
    return _Drawing(machine, list(races)).made()


class _Drawing:
    def __init__(self, machine: Machine, races: list[tuple[Access, Access]]) -> None:
        assert machine.history is not None
        self.machine, self.races, self.history = machine, races, machine.history
        self.left_out: list[str] = []
        self.warps = -(-machine.size // WARP_SIZE)
        self.rows = self._accesses()
        steps = {event.step for event in self.history.events if event.kind != "end"}
        steps |= {step for _, step, _, _ in self.rows}
        self.steps = self._chosen(sorted(steps))
        self.column = {step: number for number, step in enumerate(self.steps)}

    def made(self) -> Timeline:
        """See ``timeline``."""
        did: dict[int, list[_Done]] = {}
        # Warps that race have rows of their own.
        for warp in {self._warp(agent) for pair in self.races for _, agent in pair}:
            did[warp] = [_Done(-1, "race", "", warp, 0)]
        for warp, key in self._all():
            did.setdefault(warp, []).append(key)
        ctas = self.machine.count // self.machine.size
        alike: dict[tuple[tuple[tuple[_Done, ...], ...], tuple[tuple[str, tuple[Span, ...]], ...]], list[int]] = {}
        for cta in range(ctas):
            phases = tuple((name, tuple(spans)) for name, spans in sorted(self._phases(cta).items()))
            mine = tuple(tuple(did.get(cta * self.warps + n, ())) for n in range(self.warps))
            alike.setdefault((mine, phases), []).append(cta)
        groups: list[Group] = []
        where: dict[int, tuple[int, int]] = {}
        count = 0
        for (mine, phases), members in alike.items():
            rows: dict[tuple[_Done, ...], list[int]] = {}
            for number, what in enumerate(mine):
                rows.setdefault(what, []).append(number)
            drawn: list[Row] = []
            for what, numbers in rows.items():
                if count == MOST_ROWS:
                    continue
                count += 1
                for cta in members:
                    where |= {cta * self.warps + n: (len(groups), len(drawn)) for n in numbers}
                drawn.append(self._row(numbers, what))
            if drawn:
                groups.append(Group(_named("CTA", members), tuple(drawn), phases))
        if len(where) < ctas * self.warps:
            self.left_out.append(f"{ctas * self.warps - len(where)} of {ctas * self.warps} warps are not drawn")
        found = [self._race(one, other, where) for one, other in self.races]
        races = tuple(dict.fromkeys(item for item in found if item is not None))
        return Timeline(len(self.steps), tuple(groups), races, tuple(self.left_out))

    def _chosen(self, steps: list[int]) -> list[int]:
        """The steps that are drawn: the first ones, or those around the first race."""
        if len(steps) <= MOST_COLUMNS:
            return steps
        first = 0
        if self.races:
            at = [int(np.searchsorted(steps, self._step(row))) for row, _ in self.races[0]]
            first = max(0, min(min(at) - MOST_COLUMNS // 4, len(steps) - MOST_COLUMNS))
        self.left_out.append(f"{len(steps) - MOST_COLUMNS} of {len(steps)} steps are not drawn, {first} of them before")
        return steps[first : first + MOST_COLUMNS]

    def _step(self, row: int) -> int:
        return int(np.searchsorted(self.history.starts, row, "right"))

    def _accesses(self) -> list[tuple[int, int, int, Mark]]:
        """What warps access in shared memory and in tensor memory, their products, and what races: warp, step,
        instruction, and what it does."""
        machine, columns = self.machine, self.machine.trace.columns()
        products = [at for at, op in enumerate(machine.body) if isinstance(op, ops.TensorProduct | ops.Wgmma)]
        tensor = [number for number, name in enumerate(machine.trace.proxies) if name == TENSOR]
        # They are made by agents of their own, but told where the warp issues them.
        issued = np.isin(columns["instruction"], products) | np.isin(columns["proxy"], tensor)
        shared = machine.memory.is_shared(columns["place"]) & (columns["agent"] < machine.clocks.threads)
        raced = np.isin(np.arange(len(shared)), sorted({row for pair in self.races for row, _ in pair}))
        found: dict[tuple[int, int, int], Mark] = {}
        for row in np.flatnonzero(issued | shared | (raced & (columns["agent"] < machine.clocks.threads))).tolist():
            at = int(columns["instruction"][row])
            reads = bool(columns["kind"][row] == READ)
            key = self._warp(int(columns["agent"][row])), self._step(row), at
            found[key] = "product" if at in products else "read" if reads else "write"
        return [(*key, mark) for key, mark in found.items()]

    def _warp(self, agent: int) -> int:
        return self.machine.warp(self.machine.copies.thread(agent))

    def _all(self) -> Iterable[tuple[int, _Done]]:
        """All that warps do, in order: the warp, and when it does what."""
        every: list[tuple[int, _Done]] = []
        for warp, step, at, mark in self.rows:
            if step in self.column:
                every.append((warp, _Done(step, mark, "", 0, at)))
        for event in self.history.events:
            if event.kind in ("complete", "read", "write"):
                continue
            threads = self.machine.clocks.threads
            agents = [agent for agent in event.agents.tolist() if agent < threads or event.kind != "arrive"]
            for warp in sorted(map(self._warp, agents)):  # that a copy arrives is told by the phase
                every.append((warp, _Done(event.step, event.kind, self._name(event), event.number, event.at)))
        return sorted(dict.fromkeys(every), key=lambda item: item[1].step)

    def _name(self, event: Event) -> str:
        what = event.what
        match what:
            case ("mbarrier", int(place)):
                return self.machine.mbarriers.name(place).removeprefix("mbarrier ")
            case ("barrier", _, number):
                return f"barrier {number}"
            case ("cluster", *_):
                return "cluster barrier"
            case ("warp", *_):
                return "lanes"
            case ("group", kind):
                return f"{kind} group"
        return ""

    def _row(self, numbers: list[int], what: Iterable[_Done]) -> Row:
        waits: list[Span] = []
        ticks: list[Tick] = []
        open_: dict[str, tuple[int, int]] = {}
        ends = None
        for step, kind, name, number, at in what:
            op = self.machine.body[at]
            line, column = op.source.span.line, self.column.get(step)
            if kind == "race":
                continue
            if kind == "wait":
                open_[name] = step, line
            elif kind == "pass":
                begun, line = open_.pop(name, (step, line))
                span = self._span(begun, step, _phase(name, number), line)
                waits += [span] if span is not None else []
            elif kind == "end":
                later = [n for n, other in enumerate(self.steps) if other >= step]
                ends = later[0] if later else None
            elif column is not None:
                mark = _MARKS[kind]
                text = " ".join(op.source.text.split())
                ticks.append(Tick(column, mark, f"{_phase(name, number)}: {text}" if name else text, line))
        for unmet, (begun, line) in open_.items():
            span = self._span(begun, self.steps[-1] if self.steps else 0, f"{unmet}, for ever", line)
            waits += [span] if span is not None else []
        return Row(_named("warp", numbers), tuple(waits), tuple(dict.fromkeys(ticks)), ends)

    def _span(self, begin: int, end: int, text: str, line: int = 0) -> Span | None:
        """The columns between two steps; None where none of them is drawn."""
        inside = [number for number, step in enumerate(self.steps) if begin <= step <= end]
        return Span(inside[0], inside[-1], text, line) if inside else None

    def _phases(self, cta: int) -> dict[str, list[Span]]:
        """The phases of the barriers and mbarriers of a CTA: from the first that comes to it to its end."""
        begun: dict[tuple[str, int], int] = {}
        found: dict[str, list[Span]] = {}
        for event in self.history.events:
            if not self._is_of(event, cta):
                continue
            key = self._name(event), event.number
            if event.kind in ("arrive", "wait"):
                begun.setdefault(key, event.step)
            elif event.kind == ("complete" if event.what[0] == "mbarrier" else "pass"):  # type: ignore[index]
                span = self._span(begun.get(key, event.step), event.step, f"phase {event.number}")
                spans = found.setdefault(key[0], [])
                if span is not None and span not in spans:
                    spans.append(span)
        return found

    def _is_of(self, event: Event, cta: int) -> bool:
        machine = self.machine
        match event.what:
            case ("mbarrier", int(place)):
                return machine.memory.owner_of(place) == cta
            case ("barrier", int(owner), _):
                return owner == cta
            case ("cluster", int(cluster)):
                return bool(machine.clusters[cta] == cluster)
        return False

    def _race(
        self, one: Access, other: Access, where: dict[int, tuple[int, int]]
    ) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
        ends = []
        for row, agent in (one, other):
            column, place = self.column.get(self._step(row)), where.get(self._warp(agent))
            if column is None or place is None:
                return None
            ends.append((*place, column))
        return ends[0], ends[1]


def _phase(name: str, number: int) -> str:
    if number < 0:
        return f"{name}: no phase"
    return f"{name} phase {number}" if name and name != "lanes" and not name.endswith("group") else name


def _named(what: str, numbers: list[int]) -> str:
    """``warp 3`` or ``warps 0-3, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"{what}{'s' if len(numbers) > 1 else ''} {text}"
