"""Base causality order (PTX ISA 8.9.5) between the accesses of a launch, by vector clocks.

An *agent* is what makes accesses one after the other: a thread, or an asynchronous operation (``add_component``). The
threads are the agents 0, 1, ... of the launch, and each agent belongs to a CTA, in which it is a component. It counts
the steps between its synchronizations: its clock.

A *view* is what an agent comes after: for each CTA a vector with the last clock of each component of it. Views and
vectors have numbers and never change, so that many views share a vector and many agents a view; 0 is the view of
nothing. As most that is learnt is of the own CTA, a view has the vector of its ``home`` apart from those of all others.
What an operation changes is which view an agent has:

- ``synchronize(threads)``: threads meet, and each comes after what all of them did.
- ``release(agent)``, ``release_all(agents)``: what comes before an operation of the agent that releases, itself
  included, for somebody to ``acquire`` later; the next steps of the agent are not in it.
- ``acquire(agents, releases)``: each of the agents comes after all of that. To order them behind the steps of an agent
  alone, but not behind what that one came after, give ``Release(NOTHING, agent, clock)``.
- ``issued(agents)``: what comes before an asynchronous operation of agents, as what has been in time (``ISSUED``).
- ``ended(home, agents)``: what comes before the end of a grid, all of whose agents these are.
- ``fence(threads, kind)``: each executes a proxy fence between the generic proxy and the one that ``kind`` names.
- ``common(views)``: what all of some views have.
- ``add_component(cta)``: one more agent, which comes after nothing yet.

A view has *layers* beside base causality order: what precedes a proxy fence that precedes the agent (8.9.5, proxy-
preserved base causality order). The fence counts for accesses by the proxy ``kind`` in the CTA that executes it. So
there is, for each kind, a layer of what leaves the proxy (of each CTA what the fences of that CTA have behind them),
and for each CTA with fences a layer of what its fences let enter the proxy there, from the generic proxy and from the
proxy in other CTAs. Every synchronization joins the layers as it joins the views; without proxy fences there are none.

``after`` asks for base causality order, ``passed`` for that through the proxy fences that two accesses need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxmm.whole.arrays import Flags, Numbers

Rows: TypeAlias = NDArray[np.int32]
Layer: TypeAlias = tuple[str, str, int]
"""The kind of the fences; ``leave``, ``enter`` or ``both``; the CTA of the fence, -1 for all."""
NOTHING = 0
"""The view of an agent that comes after nothing."""
API: Layer = ("grid", "both", -1)
"""What precedes the end of a grid that precedes the agent: it is ordered whatever the proxies are (8.9.4)."""
ISSUED: Layer = ("issue", "both", -1)
"""What precedes the issue of an asynchronous operation that is done before: in time, but not in causality order."""
HANDED: Layer = ("tensor", "both", -1)
"""What precedes the agent in tensor memory alone, by fences of tcgen05 (9.7.16.6.3 of PTX ISA 9.0)."""
PIPED: Layer = ("pipe", "both", -1)
"""What is issued before a ``tcgen05.fence::before_thread_sync`` that precedes the agent (9.7.16.6.2)."""
SEQUENTIAL: Layer = ("sc", "leave", -1)
"""What precedes a ``fence.sc`` that precedes the agent."""
_NO_LAYERS: Mapping[Layer, int] = {}


class Release(Struct, frozen=True):
    """What precedes an operation: all that the ``view`` has, and the steps of ``agent`` up to ``clock``. ``fenced``:
    only what the view has, which is what precedes the ``fence.sc`` that precede the operation."""

    view: int
    agent: int
    clock: int
    fenced: bool = False


class _Table:
    """Rows that are added one by one."""

    def __init__(self, width: int) -> None:
        self.rows = np.zeros((64, width), np.int32)
        self.count = 0

    def add(self, row: Rows | Sequence[int]) -> int:
        if self.count == len(self.rows):
            self.rows = np.concatenate((self.rows, np.zeros_like(self.rows)))
        self.rows[self.count] = row
        self.count += 1
        return self.count - 1

    def widen(self, width: int) -> None:
        rows = np.zeros((len(self.rows), width), np.int32)
        rows[:, : self.rows.shape[1]] = self.rows
        self.rows = rows


class Clocks:
    """The clock of each agent; at first these are ``threads`` threads, ``size`` in a CTA, then ``leaders`` more for
    each CTA, which are as threads."""

    def __init__(self, threads: int, size: int, leaders: int = 0, still: bool = False) -> None:
        """``still``: nobody asks for the order, so that only the clocks go on; everything comes after all else."""
        ctas = threads // size
        self.threads, self._still = threads + ctas * leaders, still
        self.clock = np.ones(self.threads, np.int32)
        parts = np.arange(threads, dtype=np.int64), np.arange(ctas * leaders, dtype=np.int64)
        self.cta = np.concatenate((parts[0] // size, parts[1] // max(leaders, 1)))
        self._component = np.concatenate((parts[0] % size, size + parts[1] % max(leaders, 1)))
        self._used = np.full(ctas, size + leaders, np.int64)
        self._vectors, self._others, self._views = _Table(size + leaders), _Table(ctas), _Table(3)
        self._vectors.add(np.zeros(size + leaders, np.int32))
        self._rows: dict[bytes, int] = {}
        self._most: dict[tuple[int, ...], int] = {}
        self._numbers: dict[tuple[int, int, int, tuple[tuple[Layer, int], ...]], int] = {}
        self._acquired: dict[tuple[int, int, frozenset[Release]], int] = {}
        self._layers: dict[int, Mapping[Layer, int]] = {}
        self.timed = False
        """Whether there is an order in time beside that of causality."""
        self._fenced: dict[str, Numbers] = {}
        nowhere = self._row(np.zeros(ctas, np.int32))
        views = [self._view(cta, 0, nowhere, _NO_LAYERS) for cta in range(ctas)]
        self._seen = np.array(views, np.int64)[self.cta]

    def add_component(self, cta: int) -> int:
        """One more agent of a CTA; its number."""
        component = int(self._used[cta])
        self._used[cta] += 1
        if component >= self._vectors.rows.shape[1]:
            self._vectors.widen(2 * component)
        self.clock = np.append(self.clock, np.int32(1))
        self.cta = np.append(self.cta, cta)
        self._component = np.append(self._component, component)
        self._seen = np.append(self._seen, NOTHING)
        for kind, fenced in self._fenced.items():
            self._fenced[kind] = np.append(fenced, 0)
        return len(self.clock) - 1

    def views(self, agents: Numbers) -> Numbers:
        """The view that each of ``agents`` has, by its number."""
        if self._still:
            return np.zeros(len(agents), np.int64)
        for kind in self._fenced:
            for agent in agents[self._fenced[kind][agents] > 0].tolist():
                one = np.array([agent])
                self._seen[agent] = self._joined(int(self.cta[agent]), one, one[:0])
        for fenced in self._fenced.values():
            fenced[agents] = 0
        return self._seen[agents]

    def release(self, agent: int) -> Release:
        """What comes before an operation of ``agent`` that releases, and the operation."""
        found = Release(int(self.views(np.array([agent]))[0]), agent, int(self.clock[agent]))
        self.clock[agent] += 1
        return found

    def issued(self, agents: Numbers) -> Release:
        """What precedes an operation that ``agents`` of a CTA issue now, for those who know that it is done
        (8.9.1.1)."""
        self.timed, home = True, int(self.cta[agents[0]])
        views = np.unique(self.views(agents))
        parts = [*views.tolist(), *(self._layers.get(v, _NO_LAYERS).get(ISSUED, NOTHING) for v in views.tolist())]
        before = self._join(home, np.unique(parts), agents, self.clock[agents].astype(np.int64), _NO_LAYERS)
        self.clock[agents] += 1
        return Release(self._view(home, 0, 0, {ISSUED: before}), int(agents[0]), 0)

    def ended(self, home: int, agents: Numbers) -> Release:
        """What comes before the end of a grid, all ``agents`` of which have ended, for who begins behind it (8.9.4)."""
        views, clocks = np.unique(self.views(agents)), self.clock[agents].astype(np.int64)
        every = self._join(home, views, agents, clocks, _NO_LAYERS)
        layers = {**self._join_layers(home, views), API: every}
        return Release(self._join(home, views, agents, clocks, layers), int(agents[0]), 0)

    def release_all(self, agents: Numbers) -> Release:
        """The same of some agents of one CTA at once."""
        found = Release(self._joined(int(self.cta[agents[0]]), agents, agents), int(agents[0]), 0)
        self.clock[agents] += 1
        return found

    def acquire(self, agents: Numbers, releases: Collection[Release]) -> None:
        """Each of ``agents`` comes after all ``releases``."""
        if not releases or self._still:
            return
        for agent, view in zip(agents.tolist(), self.views(agents).tolist(), strict=True):
            self._seen[agent] = self.joined(int(self.cta[agent]), view, releases)

    def joined(self, home: int, view: int, releases: Iterable[Release]) -> int:
        """The view of an agent of the CTA ``home`` that has ``view`` and comes after all ``releases``."""
        key = home, view, frozenset(releases)
        if key not in self._acquired:
            views = np.array(sorted({view, *(item.view for item in key[2])}), np.int64)
            steps = [(item.agent, item.clock) for item in key[2] if not item.fenced]
            agents, clocks = np.array(steps, np.int64).reshape(-1, 2).T
            self._acquired[key] = self._join(home, views, agents, clocks, self._join_layers(home, views))
        return self._acquired[key]

    def back(self, agent: int, view: int) -> None:
        """An agent comes after no more than that of a view that it had before, and what it does itself."""
        self.views(np.array([agent]))
        self._seen[agent] = view

    def common(self, views: Numbers) -> int:
        """What all of some views of one CTA have."""
        every = np.unique(views)
        if len(every) == 1 or every[0] == NOTHING:
            return int(every[0])
        table = self._views.rows[every]
        home = int(table[0, 0])
        rows = self._others.rows[table[:, 2]]
        rows[:, home] = table[:, 1]
        dense = rows.min(axis=0)
        for cta in np.flatnonzero((rows != dense).any(axis=0)).tolist():
            dense[cta] = self._minimum(rows[:, cta])
        layers = [self._layers.get(view, _NO_LAYERS) for view in every.tolist()]
        shared = set(layers[0]).intersection(*layers[1:])
        inside = {layer: self.common(np.array([each[layer] for each in layers], np.int64)) for layer in shared}
        own, dense[home] = int(dense[home]), 0
        return self._view(home, own, self._row(dense), inside)

    def synchronize(self, threads: Numbers) -> None:
        """Threads of one CTA meet: each comes after what all of them did before."""
        joined = {cta: self._joined(cta, threads, threads) for cta in np.unique(self.cta[threads]).tolist()}
        for cta, view in joined.items():
            self._seen[threads[self.cta[threads] == cta]] = view
        for fenced in self._fenced.values():
            fenced[threads] = 0
        self.clock[threads] += 1

    def fence(self, threads: Numbers, kind: str) -> None:
        """Each of ``threads`` executes a proxy fence between the generic proxy and the one that ``kind`` names."""
        if kind not in self._fenced:
            self._fenced[kind] = np.zeros(len(self.clock), np.int64)
        self._fenced[kind][threads] = self.clock[threads]
        self.clock[threads] += 1

    def leave(self, threads: Numbers, kind: str) -> list[int]:
        """Each of ``threads`` executes a release fence of the proxy ``kind``, which goes one way (9.7.14.4): the view
        of what precedes it."""
        found = []
        for thread in threads.tolist():
            one, home = np.array([thread]), int(self.cta[thread])
            view = self.views(one)
            before = self._join(home, view, one, self.clock[one].astype(np.int64), _NO_LAYERS)
            self.hand(thread, (kind, "leave", -1), before)
            found.append(before)
        return found

    def enter(self, threads: Numbers, kind: str, what: str) -> None:
        """Each of ``threads`` executes an acquire fence of the proxy ``kind`` for ``what`` is accessed by it in their
        CTA: what precedes a release fence that precedes this one."""
        for thread in threads.tolist():
            view = int(self.views(np.array([thread]))[0])
            before = self._layers.get(view, _NO_LAYERS).get((kind, "leave", -1), NOTHING)
            self.hand(thread, (what, "enter", int(self.cta[thread])), before)

    def hand(self, thread: int, layer: Layer, before: int) -> None:
        """A thread has what a view has in a layer, too."""
        self.views(np.array([thread]))
        view, home, none = int(self._seen[thread]), int(self.cta[thread]), np.zeros(0, np.int64)
        layers = dict(self._layers.get(view, _NO_LAYERS))
        parts = np.unique(np.array([before, layers.get(layer, NOTHING)], np.int64))
        layers[layer] = self._join(home, parts, none, none, _NO_LAYERS)
        own, row = self._views.rows[view, 1:].tolist()
        self._seen[thread] = self._view(home, own, row, layers)
        self.clock[thread] += 1

    def layer(self, view: int, layer: Layer) -> int:
        """What a view has in a layer, as a view."""
        return self._layers.get(view, _NO_LAYERS).get(layer, NOTHING)

    def after(self, views: Numbers, agents: Numbers, others: Numbers, clocks: Numbers) -> Flags:
        """Whether a step of each of ``agents`` with this view comes after that of another one with this clock; those of
        an agent that is no thread have no order of their own."""
        own = (agents == others) & (agents < self.threads)
        found: Flags = own | (self._known(views, others) >= clocks)
        return found

    def passed(self, layers: Sequence[Layer], views: Numbers, others: Numbers, clocks: Numbers) -> Flags:
        """Whether the fences of each layer have what each of ``others`` did up to the clock before each view."""
        number = {key: at for at, key in enumerate(dict.fromkeys(zip(layers, views.tolist(), strict=True)))}
        found = np.array([self._layers.get(view, _NO_LAYERS).get(layer, NOTHING) for layer, view in number], np.int64)
        which = np.array([number[key] for key in zip(layers, views.tolist(), strict=True)], np.int64)
        result: Flags = self._known(found[which], others) >= clocks
        return result

    def _known(self, views: Numbers, others: Numbers) -> Rows:
        """The clock of each of ``others`` up to which a view has it."""
        if self._still:
            return self.clock[others]
        ctas = self.cta[others]
        home, own, row = self._views.rows[views].T
        vectors = np.where(home == ctas, own, self._others.rows[row, ctas])
        found: Rows = self._vectors.rows[vectors, self._component[others]]
        return found

    def _joined(self, home: int, agents: Numbers, stepping: Numbers) -> int:
        """What ``agents`` have seen, and done if they are ``stepping``, as a view of the CTA ``home``."""
        if self._still:
            return NOTHING
        views = np.unique(self._seen[agents])
        layers = self._join_layers(home, views)
        for kind, fenced in self._fenced.items():
            through = agents[fenced[agents] > 0]
            if through.size:
                layers = self._pass(home, kind, layers, through)
        return self._join(home, views, stepping, self.clock[stepping].astype(np.int64), layers)

    def _pass(self, home: int, kind: str, layers: Mapping[Layer, int], agents: Numbers) -> Mapping[Layer, int]:
        """``layers`` with what proxy fences of ``agents`` have before them."""
        found = dict(layers)
        for cta in np.unique(self.cta[agents]).tolist():
            those = agents[self.cta[agents] == cta]
            views = np.unique(self._seen[those])
            before = self._join(home, views, those, self._fenced[kind][those], _NO_LAYERS)
            left = [self._layers.get(view, _NO_LAYERS).get((kind, "leave", -1), NOTHING) for view in views.tolist()]
            for way, where, parts in (
                ("enter", cta, [before]),
                ("leave", -1, [self._only(cta, before)]),
                ("both", cta, left),
            ):
                layer = kind, way, where
                every = np.array(sorted({*parts, found.get(layer, NOTHING)}), np.int64)
                found[layer] = self._join(home, every, those[:0], those[:0], _NO_LAYERS)
        return found

    def _join(self, home: int, views: Numbers, agents: Numbers, clocks: Numbers, layers: Mapping[Layer, int]) -> int:
        """A view of the CTA ``home`` with what ``views`` have and ``agents`` did up to ``clocks``."""
        if self._still:
            return NOTHING
        table = self._views.rows[views[views != NOTHING]]
        if (table[:, 0] == home).all() and len(np.unique(table[:, 2])) == 1 and (self.cta[agents] == home).all():
            own, row = self._maximum(table[:, 1]), int(table[0, 2])
            return self._view(home, self._stepped(own, agents, clocks), row, layers)
        rows = self._others.rows[table[:, 2]]
        rows[np.arange(len(table)), table[:, 0]] = table[:, 1]
        dense = rows.max(axis=0, initial=0)
        for cta in np.flatnonzero((rows != dense).any(axis=0)).tolist():
            dense[cta] = self._maximum(rows[:, cta])
        for cta in np.unique(self.cta[agents]).tolist():
            here = self.cta[agents] == cta
            dense[cta] = self._stepped(int(dense[cta]), agents[here], clocks[here])
        own, dense[home] = int(dense[home]), 0
        return self._view(home, own, self._row(dense), layers)

    def _join_layers(self, home: int, views: Numbers) -> Mapping[Layer, int]:
        """The layers of all ``views``, as views of the CTA ``home``."""
        if not self._layers:
            return _NO_LAYERS
        found: dict[Layer, list[int]] = {}
        for view in views.tolist():
            for layer, inside in self._layers.get(view, _NO_LAYERS).items():
                found.setdefault(layer, []).append(inside)
        none = np.zeros(0, np.int64)

        def joined(inside: set[int]) -> int:
            if len(inside) == 1 and self._views.rows[(one := next(iter(inside)))][0] == home:
                return one
            return self._join(home, np.array(sorted(inside), np.int64), none, none, _NO_LAYERS)

        return {layer: joined(set(inside)) for layer, inside in found.items()}

    def _only(self, cta: int, view: int) -> int:
        """Of a view what it has of one CTA, as a view of that CTA."""
        home, own, row = self._views.rows[view].tolist()
        vector = own if home == cta else int(self._others.rows[row, cta])
        return self._view(cta, vector, 0, _NO_LAYERS)

    def _view(self, home: int, own: int, row: int, layers: Mapping[Layer, int]) -> int:
        """The number of a view."""
        key = home, own, row, tuple(sorted(layers.items()))
        if key not in self._numbers:
            self._numbers[key] = self._views.add((home, own, row))
            if layers:
                self._layers[self._numbers[key]] = layers
        return self._numbers[key]

    def _row(self, row: Rows) -> int:
        """The number of what is known of other CTAs."""
        key = row.tobytes()
        if key not in self._rows:
            self._rows[key] = self._others.add(row)
        return self._rows[key]

    def _maximum(self, vectors: Rows) -> int:
        """The vector with the last clock of each component."""
        key = tuple(np.unique(vectors).tolist())
        if len(key) == 1:
            return int(key[0])
        if key not in self._most:
            rows = self._vectors.rows[list(key)]
            found = rows.max(axis=0)
            same = np.flatnonzero((rows == found).all(axis=1))
            self._most[key] = int(key[same[0]]) if same.size else self._vectors.add(found)
        return self._most[key]

    def _minimum(self, vectors: Rows) -> int:
        """The vector with the first clock of each component."""
        rows = self._vectors.rows[np.unique(vectors)]
        found = rows.min(axis=0)
        same = np.flatnonzero((rows == found).all(axis=1))
        return int(np.unique(vectors)[same[0]]) if same.size else self._vectors.add(found)

    def _stepped(self, vector: int, agents: Numbers, clocks: Numbers) -> int:
        """``vector`` with the clocks of ``agents`` of its CTA."""
        if not len(agents):
            return vector
        found = self._vectors.rows[vector].copy()
        np.maximum.at(found, self._component[agents], clocks.astype(np.int32))
        if (found == self._vectors.rows[vector]).all():
            return vector
        return self._vectors.add(found)
