"""What a thread may read for ever: the conditions on the two last rounds of the loops that spin (docs/progress.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmm.engines.explicit.candidates import Candidate
from ptxmm.engines.explicit.prefixes import Run, plainly_repeats
from ptxmm.engines.fairness import State
from ptxmm.events.explicit.barriers import EPOCH, Meeting
from ptxmm.events.explicit.relations.execution import Layout
from ptxmm.events.explicit.trace import Cell
from ptxmm.program.identity import EventId
from ptxmm.program.shared.spinning import Loop, loops

_Bytes = tuple[Cell, int, int]
"""A part of a read: the cell it is in, its first byte, and how many bytes it has."""


class SpinFixpoint:
    """The rounds of one choice of runs, and what must hold of them if they go on like that for ever.

    ``paired_reads``: the reads of the first rounds with those of the second; ``idempotent``: the writes of these
    rounds, each with the read that it belongs to. ``visible``: the pairs of reads and writes such that the read
    can't miss the write for ever.
    """

    __slots__ = ("_cut", "_fences", "_layout", "_quiet", "_runs", "_visible", "idempotent", "paired_reads")

    def __init__(self, layout: Layout, runs: Sequence[Run], states: Sequence[State], visible: int) -> None:
        self._layout = layout
        self._runs = [run for run, state in zip(runs, states, strict=True) if state == "spins"]
        self._visible = visible
        self.paired_reads: list[tuple[int, int]] = []
        self.idempotent: dict[int, int] = {}
        self._fences: list[tuple[set[int], set[int]]] = []
        numbers = layout.numbers
        for run in self._runs:
            first, second = run.rounds()
            self.paired_reads += [
                (numbers[a.id, "R"], numbers[b.id, "R"]) for a, b in zip(first, second, strict=True) if a.kind == "R"
            ]
            self.idempotent |= {numbers[e.id, "W"]: numbers[e.id, "R"] for e in (*first, *second) if e.kind == "W"}
            fences = [{numbers[e.id, "F"] for e in events if e.kind == "F"} for events in (first, second)]
            self._fences.append((fences[0], fences[1]))
        self._quiet = sum(1 << w for w in self.idempotent)
        self._cut = [
            (run, loop)
            for run, state in zip(runs, states, strict=True)
            if state == "cut"
            for loop in _repeating(layout, run)
        ]

    def possible(self, candidate: Candidate) -> bool:
        """Whether ``candidate``, as far as it is known, may read the same in both rounds, and change nothing."""
        values = candidate.values
        for a, b in self.paired_reads:
            mine, theirs = self._sources(candidate, a), self._sources(candidate, b)
            for part, w in mine.items():
                other = theirs.get(part)
                if other is not None and other != w and other not in self.idempotent:
                    return False
            if self._misses(candidate, a, mine) or self._misses(candidate, b, theirs):
                return False
            if values[a] is not None and values[b] is not None and values[a] != values[b]:
                return False
        return all(values[w] is None or values[r] is None or values[w] == values[r] for w, r in self.idempotent.items())

    def _sources(self, candidate: Candidate, read: int) -> dict[_Bytes, int]:
        """The write that each part of ``read`` is known to come from; where only its value is known, none."""
        known, n = candidate.rf.union, self._layout.algebra.n
        parts = candidate.sources.get(read, {})
        return {(p.cell, p.offset, p.size): w for p, w in parts.items() if known >> (w * n + read) & 1}

    def _misses(self, candidate: Candidate, read: int, sources: Mapping[_Bytes, int]) -> bool:
        """Whether ``read`` misses for ever, by coherence order as far as it is known, what it can't miss."""
        layout = self._layout
        visible = layout.algebra.successors(self._visible, read) & ~self._quiet
        return any(
            layout.algebra.successors(candidate.co, w) & visible & layout.covering(part[0])
            for part, w in sources.items()
        )

    def holds(self, candidate: Candidate, fr: int, fsc: int) -> bool:
        """Whether the rounds of the complete ``candidate`` can go on for ever, with from-reads and Fence-SC order."""
        algebra = self._layout.algebra
        if not self.possible(candidate):
            return False
        for r in (r for pair in self.paired_reads for r in pair):
            if algebra.successors(fr, r) & algebra.successors(self._visible, r) & ~self._quiet:
                return False
        return not fsc or self._after_all(fsc)

    def missed(self, fr: int) -> Iterator[tuple[int, int]]:
        """Each read of the last rounds with the writes that come after what it reads, and that it does not see."""
        for _, r in self.paired_reads:
            later = self._layout.algebra.successors(fr, r)
            for w in range(self._layout.initial_first):
                if later >> w & 1 and w not in self.idempotent:
                    yield r, w

    def _after_all(self, fsc: int) -> bool:
        """Whether the fences of the rounds come after all others, and second rounds after the first ones: infinitely
        many fences can't all precede one."""
        rounds = {f for first, second in self._fences for f in first | second}
        for a, b in self._layout.algebra.pairs(fsc):
            if a in rounds and b not in rounds:
                return False
            if any(a in second for _, second in self._fences) and any(b in first for first, _ in self._fences):
                return False
        return True

    def waits_for_ever(self, meeting: Meeting) -> bool:
        """Whether the waits on mbarriers in the rounds return in the end, when all else has happened, what they
        return."""
        for run in self._runs:
            assert run.spin is not None
            for step in run.trace.steps:
                if step.id.instruction not in run.spin.first and step.id.instruction not in run.spin.second:
                    continue
                phase = meeting.phases.get(step.id)
                if phase is None or step.place is None or phase % EPOCH != meeting.completed.get(step.place, 0):
                    return False
                later = (p for i, p in meeting.phases.items() if p is not None and self._place(i) == step.place)
                if any(p // EPOCH > phase // EPOCH for p in later):
                    return False
        return True

    def _place(self, identity: EventId) -> tuple[str, int] | None:
        """The mbarrier of an operation."""
        for kind in ("MBA", "MBW"):
            number = self._layout.numbers.get((identity, kind))
            if number is not None:
                return self._layout.events[number].mbarrier
        return None

    def droppable(self, candidate: Candidate) -> bool:
        """Whether a loop that goes on has a round that changes nothing: the execution without it is judged as well."""
        values = candidate.values
        for run, loop in self._cut:
            rounds: dict[int, bool] = {}
            for event in run.trace.events:
                if event.id.instruction not in loop.body or event.kind == "MBP":
                    continue
                idempotent = event.kind in ("R", "F")
                if event.kind == "W":
                    w, r = (self._layout.numbers.get((event.id, kind)) for kind in ("W", "R"))
                    idempotent = (
                        w is not None
                        and r is not None
                        and values[w] is not None
                        and values[w] == values[r]
                        and self._uniform(w)
                    )
                rounds[event.id.round] = rounds.get(event.id.round, True) and idempotent
            if any(rounds.values()):
                return True
        return False

    def _uniform(self, w: int) -> bool:
        """Whether all accesses of the bytes that ``w`` writes can't miss each other, whoever makes them."""
        layout, algebra = self._layout, self._layout.algebra
        for cell in layout.made_of[w]:
            mask = layout.covering(cell)
            for i in range(layout.initial_first):
                if mask >> i & 1:
                    others = mask & ~self._same_thread(i)
                    if others & ~algebra.successors(self._visible, i):
                        return False
        return True

    def _same_thread(self, i: int) -> int:
        begin, end = self._layout.spans[self._layout.thread_of[i]]
        return (1 << end) - (1 << begin)


def _repeating(layout: Layout, run: Run) -> list[Loop]:
    """The loops of a run that was cut whose rounds can be judged one by one."""
    found = loops(layout.scene.test.threads[run.trace.thread])
    return [loop for loop in found if plainly_repeats(loop, found)]
