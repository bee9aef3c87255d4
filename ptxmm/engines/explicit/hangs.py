"""The search for an execution that never ends: some threads spin or wait for ever, all others have ended or may starve.

On the explicit side: paths of threads, meetings of barriers, reads-from and orders as in ``enumerate``. A thread that
spins for ever is a thread of its own that ends (``spinning``); what its two last rounds read must be what it may read
for ever (``spin_fixpoint``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.cat import Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.shipped import is_shipped
from ptxmm.engines.arrivals import in_order
from ptxmm.engines.explicit.candidates import Candidate, Candidates
from ptxmm.engines.explicit.cases import Path, executed, links_of, needed_tokens, outcome
from ptxmm.engines.explicit.orders import Judge, Rules, rules
from ptxmm.engines.explicit.precomputed import precomputed_evaluator
from ptxmm.engines.explicit.prefixes import Run, complete_run, held, idles, stops
from ptxmm.engines.explicit.spin_fixpoint import SpinFixpoint
from ptxmm.engines.fairness import Fairness, State, may_starve
from ptxmm.engines.result import Limits
from ptxmm.events.explicit.barriers import EPOCH, Meeting, meetings
from ptxmm.events.explicit.barriers.exchanges import Links
from ptxmm.events.explicit.domains import Domains, possible_values, traces
from ptxmm.events.explicit.interpreter import programs
from ptxmm.events.explicit.readings import readings
from ptxmm.events.explicit.refusals import refuse_noncoherent_loads
from ptxmm.events.explicit.relations.barriers import PHASES, phase_relations
from ptxmm.events.explicit.relations.base import WITNESS, base_of
from ptxmm.events.explicit.relations.execution import Layout, Scene
from ptxmm.events.explicit.trace import Event
from ptxmm.program.identity import EventId
from ptxmm.program.shared.control import BARRIERS
from ptxmm.program.shared.convergence import sites
from ptxmm.program.shared.spinning import loops, spinning, without_counters
from ptxmm.program.test import Test
from ptxmm.ptx.isa import placeless
from ptxmm.ptx.ops import Atomic, CtaRank, Mapa, WarpExchange

Visibility = Literal["strong", "all"]
"""Which writes a thread that reads their location for ever sees in the end: those that are morally strong with its
reads, or all."""

_MBARRIER_BYTES = 8

_MAY_BLOCK = ("bar.sync", "bar.red", "warp.sync", "warp.exchange", "cluster.wait")


class Hang(Struct, frozen=True):
    """An execution that never ends.

    ``test``: the program it is an execution of, in which threads that spin are ``spinning``. ``runs`` and ``states`` by
    thread; ``paths``: what of the runs is executed. ``values``: by the numbers of events in ``layout``; ``sources``:
    the writes that each read takes bytes from; ``base`` and ``evaluator``: the values of all relations. ``missed``: the
    pairs of reads of these rounds and the writes that they may fail to see for ever. ``writers``: the instructions of
    the original program that may write, or arrive, somewhere: thread, pc, object, offset, size.
    """

    test: Test
    runs: tuple[Run, ...]
    states: tuple[State, ...]
    paths: tuple[Path, ...]
    meeting: Meeting
    layout: Layout
    values: tuple[int | None, ...]
    sources: Mapping[int, tuple[int, ...]]
    co: int
    base: Callable[[str], int | None]
    evaluator: Evaluator[int, int]
    missed: tuple[tuple[int, int], ...]
    writers: frozenset[tuple[int, int, str, int, int]]

    def phase(self, wait: EventId) -> int:
        """The phase that a wait is for, by its number since the initialisation of the mbarrier."""
        return (self.meeting.phases.get(wait) or 0) % EPOCH


class Answer(Struct):
    """``hang``: an execution that never ends, if one was found. ``bounded``: without one, some execution goes round a
    loop more often than the bound, in another way than one that was judged."""

    hang: Hang | None = None
    bounded: bool = False


class _Case(Struct, frozen=True):
    """A choice of runs and of a meeting of barriers."""

    test: Test
    runs: tuple[Run, ...]
    paths: tuple[Path, ...]
    states: tuple[State, ...]
    meeting: Meeting
    links: Links


class _Runs(Struct):
    """The runs of one thread by what becomes of it."""

    by_state: dict[State, list[Run]] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Add ``run``."""
        self.by_state.setdefault(run.state, []).append(run)


def deadlocks(test: Test, model: Model, limits: Limits) -> bool:
    """Whether ``test`` has an execution that never ends in which some thread waits at a barrier and all others have
    ended, wait as well, or go round loops that look for what another thread might do.

    Raises as ``search`` does.
    """
    blocking = (*BARRIERS, WarpExchange)
    meets = any(isinstance(op, blocking) for thread in test.threads for op in thread.body)
    if not meets and not any(sites(test)):
        return False
    hunt = _Hunt(test, model, limits, "fair", "strong")
    hunt.waiting = True
    return hunt.run().hang is not None


def search(test: Test, model: Model, limits: Limits, fairness: Fairness, visibility: Visibility) -> Answer:
    """Whether ``test`` has an execution that never ends, under ``model`` and a scheduler of that ``fairness``.

    Raises ``Timeout`` and ``PtxmmError`` (kind ``unsupported``) for instructions that are not supported.
    """
    return _Hunt(test, model, limits, fairness, visibility).run()


class _Hunt:
    """One search."""

    def __init__(self, test: Test, model: Model, limits: Limits, fairness: Fairness, visibility: Visibility) -> None:
        self.test = replace(test, threads=tuple(map(without_counters, test.threads)))
        self.model = model
        self.limits = limits
        self.fairness = fairness
        self.everything = visibility == "all" or "ms" not in model.definitions
        self.rules: Rules = rules(model)
        self.readings = readings(model.readings, is_shipped(model))
        self.ordered = in_order(test, model)
        self.answer = Answer()
        self.original = test
        self.domains: Domains | None = None
        self.writers: set[tuple[int, int, str, int, int]] = set()
        self.waiting = False  # some thread waits at a barrier, and no loop goes round for nothing

    def run(self) -> Answer:
        """Look for a hang; without one, for what keeps this from being all there is."""
        threads = self._runs()
        for states in self._assignments(threads, cut=False):
            if self._try(threads, states):
                return self.answer
        for states in () if self.waiting else self._assignments(threads, cut=True):
            if self._try(threads, states):
                break
        return self.answer

    # Runs.

    def _runs(self) -> list[_Runs]:
        unroll, check = self.limits.unroll, self.limits.check
        ready = programs(self.test, self.readings)
        self.domains = possible_values(self.test, ready, unroll, self.readings, check)
        found = []
        possible = []
        for t, program in enumerate(ready):
            mine = [x for x in traces(program, self.domains, unroll, self.readings, check) if x.end != "impossible"]
            possible.append(mine)
            self.writers |= {w for trace in mine for e in trace.events for w in _written(t, e)}
            runs = _Runs()
            around = loops(self.test.threads[t])
            found_here = [complete_run(x, "ends" if x.end == "end" else "cut") for x in mine if x.end in ("end", "cut")]
            for run in (*found_here, *self._spins(t)):
                if not idles(run, around):
                    runs.add(run)
            carriers = [run for same in runs.by_state.values() for run in same]
            for run in (r for carrier in carriers for r in held(self.original, t, carrier)):
                runs.add(run)
            if self.fairness != "fair":
                for run in stops(carriers, never=self.fairness not in ("hsa", "unfair")):
                    runs.add(run)
            found.append(runs)
        refuse_noncoherent_loads(self.test, possible)
        return found

    def _spins(self, t: int) -> Iterator[Run]:
        """The runs of thread ``t`` that spin for ever in one of its loops."""
        thread = self.test.threads[t]
        for loop in loops(thread):
            if not loop.may_repeat:
                continue
            simple = not loop.again and not loop.carried and not _may_write(thread.body[pc] for pc in loop.body)
            for arrival in range(1, 2 if simple else self.limits.unroll + 2):
                self.limits.check()
                spin = spinning(thread, loop, arrival)
                changed = [*self.test.threads]
                changed[t] = spin.thread
                program = programs(replace(self.test, threads=tuple(changed)), self.readings)[t]
                for trace in traces(program, self.domains, self.limits.unroll, self.readings, self.limits.check):
                    run = complete_run(trace, "spins", spin)
                    if trace.end == "end" and run.is_fixpoint:
                        yield run

    # Choices.

    def _assignments(self, threads: Sequence[_Runs], cut: bool) -> list[tuple[State, ...]]:
        """What may become of the threads, with (``cut``) or without a loop that goes on; the simplest first."""
        blocking = any(
            step.kind in _MAY_BLOCK for runs in threads for same in runs.by_state.values() for r in same
            for step in r.trace.steps
        )  # fmt: skip
        alike = _alike(self.original) if self.fairness in ("fair", "obe", "unfair") else []
        found = []
        for states in product(*(runs.by_state for runs in threads)):
            self.limits.check()
            if any(states[a] > states[b] for group in alike for a, b in pairwise(group)):
                continue  # as with these threads the other way round
            if ("cut" in states) is not cut:
                continue
            if not cut and not blocking and all(state == "ends" for state in states):
                continue  # that is no hang; what is undefined in it is for the checks of final states to say
            if "stops" in states and "spins" not in states:
                continue
            found.append(states)
        return sorted(found, key=lambda states: (sum(s != "ends" for s in states), states))

    def _try(self, threads: Sequence[_Runs], states: tuple[State, ...]) -> bool:
        """Go through the executions in which this becomes of the threads; true if that settles the question."""
        choices = [runs.by_state[state] for runs, state in zip(threads, states, strict=True)]
        done: set[tuple[object, ...]] = set()
        for runs in product(*choices):
            self.limits.check()
            for case in self._cases(runs):
                key = (*(run.beginning(p.length, p.passed) for run, p in zip(case.runs, case.paths, strict=True)),
                       *outcome(case.meeting), case.states)  # fmt: skip
                if key not in done:
                    done.add(key)
                    if self._search(case):
                        return True
        return False

    def _cases(self, runs: tuple[Run, ...]) -> Iterator[_Case]:
        test = self.test
        if any(run.spin is not None for run in runs):
            bodies = (t if r.spin is None else r.spin.thread for t, r in zip(test.threads, runs, strict=True))
            test = replace(test, threads=tuple(bodies))
        places = Scene(test).places
        steps = [run.trace.steps[: run.steps] for run in runs]
        ended = [run.state == "ends" for run in runs]
        tokens = {i for run in runs for i in needed_tokens(run.trace)}
        check = self.limits.check
        for meeting in meetings(test, places, steps, ended, check, observed=tokens, ordered=self.ordered):
            paths = tuple(executed(run.trace, meeting, run.length, run.steps) for run in runs)
            states = tuple(_state(run, meeting) for run in runs)
            if meeting.misuse is not None or not self._hangs(runs, paths, states):
                continue
            if not any(p.trace.outside and p.reaches(p.trace.outside[1]) for p in paths):
                yield _Case(test, runs, paths, states, meeting, links_of(paths, meeting))

    def _hangs(self, runs: Sequence[Run], paths: Sequence[Path], states: Sequence[State]) -> bool:
        """Whether what becomes of the threads is an endless execution that the scheduler allows."""
        threads = self.original.threads
        for t, (run, path) in enumerate(zip(runs, paths, strict=True)):
            open_ = any(states[u] != "ends" for u in run.awaits(threads, t, path.length, self.readings.next_grid))
            if open_ or (states[t] == "held" and not run.is_held(threads, t, states, self.readings.next_grid)):
                return False
        if "cut" in states:
            return True
        idle = any(s == "spins" and not run.looks for s, run in zip(states, runs, strict=True))
        if self.waiting and (idle or "waits" not in states):
            return False
        return any(s != "ends" for s in states) and may_starve(self.fairness, states, [p.length > 0 for p in paths])

    # Executions.

    def _search(self, case: _Case) -> bool:
        """Whether ``case`` has an execution; then the answer has it."""
        layout = Layout(Scene(case.test), [p.trace.events[: p.length] for p in case.paths], case.links)
        precomputed = precomputed_evaluator(self.model, layout, flags=False)
        phases = phase_relations(layout, case.meeting.phases, case.meeting.order)
        judge = Judge(self.rules, layout, precomputed, phases, self.readings.transitive, self.limits.check)
        visible = self._visible(layout, precomputed)
        fixpoint = SpinFixpoint(layout, case.runs, case.states, visible)
        cut = "cut" in case.states
        if not cut and not fixpoint.waits_for_ever(case.meeting):
            return False

        def worthwhile(partial: Candidate, evaluator: Evaluator[int, int]) -> bool:
            return not fixpoint.droppable(partial) if cut else fixpoint.possible(partial)

        # No read is more relevant than others: what they may not miss is known from the first one on.
        candidates = Candidates(
            layout, case.paths, judge, self.readings.tear, self.domains, case.meeting.tokens, (), worthwhile
        )
        start = candidates.start()
        if start is None:
            return False
        for candidate in candidates.search(start, set()):
            if not worthwhile(candidate, precomputed):
                continue
            for fsc, co in judge.orders(candidate.rf):
                if cut:
                    self.answer.bounded = True
                    return True
                fr = layout.fr(candidate.rf, co)
                if fixpoint.holds(candidate, fr, fsc):
                    base = base_of(layout, candidate.rf, co, fsc, phases)
                    evaluator = precomputed.changed(WITNESS | PHASES, base)
                    self.answer.hang = Hang(
                        case.test, case.runs, case.states, case.paths, case.meeting, layout, tuple(candidate.values),
                        {r: tuple(dict.fromkeys(parts.values())) for r, parts in candidate.sources.items()},
                        co, base, evaluator, tuple(fixpoint.missed(fr)), frozenset(self.writers),
                    )  # fmt: skip
                    return True
        return False

    def _visible(self, layout: Layout, precomputed: Evaluator[int, int]) -> int:
        if self.everything:
            universe = layout.algebra.universe()
            return layout.algebra.product(universe, universe)
        return precomputed.value("ms")


def _alike(test: Test) -> list[list[int]]:
    """Groups of threads with the same code, each alone in a CTA of which nothing else is known."""
    if any(item.owner is not None for item in test.objects.values()):
        return []
    places = Scene(test).places
    groups: dict[object, list[int]] = {}
    for t, thread in enumerate(test.threads):
        where = thread.placement
        alone = sum(place.cta == places[t].cta for place in places) == 1 and where.cluster is None
        if alone and not any(isinstance(op, CtaRank | Mapa) for op in thread.body):
            code = placeless(thread.body)
            values = tuple(sorted(thread.initial.items())), tuple(sorted(thread.registers.items(), key=str))
            groups.setdefault((where.gpu, where.grid, where.host, where.overlap, code, values), []).append(t)
    return list(groups.values())


def _written(t: int, event: Event) -> Iterator[tuple[int, int, str, int, int]]:
    """Where an event of thread ``t`` writes or arrives."""
    if event.kind == "W" and event.cell is not None:
        yield (t, event.id.instruction, *event.cell)
    elif event.kind == "MBA" and event.mbarrier is not None:
        yield (t, event.id.instruction, *event.mbarrier, _MBARRIER_BYTES)


def _may_write(ops: Iterator[object]) -> bool:
    """Whether some round of a loop of these may write: then rounds before the last ones may matter."""
    return any(isinstance(op, Atomic) for op in ops)


def _state(run: Run, meeting: Meeting) -> State:
    if run.trace.thread in meeting.waiting:
        return "waits"
    return run.state
