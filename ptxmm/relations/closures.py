"""The transitive closure of a symbolic relation: paths of settled pairs, and of others that each have a formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

Row = dict[int, Formula]
"""The events that one leads to, each with when it does."""

Order = Mapping[tuple[int, int], Formula]
"""A strict total order on some events that are always executed: when each pair is in it."""


class Paths:
    """The paths of a relation on events, by their first pair that is not settled.

    ``rows``: the settled pairs, transitively closed, as bit rows; ``may``: the others. ``after[u][z]`` is when a path
    with at least one pair of ``may``, the first of them from ``u``, leads to ``z``. ``orders``: see ``Order``.
    """

    def __init__(self, formulas: Formulas, rows: list[int], may: dict[int, Row], orders: list[Order]) -> None:
        self._formulas = formulas
        self._may = may
        self._onward = [row | 1 << x for x, row in enumerate(rows)]
        self._tails = [x for x, row in may.items() if row]
        self.after: dict[int, Row] = {u: self._settled(may[u]) for u in self._tails}
        self._close(orders)

    def firsts(self, x: int) -> list[int]:
        """The events from which a path from ``x`` may go on by a pair that is not settled."""
        return [u for u in self._tails if self._onward[x] >> u & 1]

    def _settled(self, edges: Row) -> Row:
        """Where ``edges`` and then settled pairs lead."""
        found: dict[int, list[Formula]] = {}
        for v, f in edges.items():
            for z in bits(self._onward[v]):
                found.setdefault(z, []).append(f)
        return {z: self._formulas.any(fs) if len(fs) > 1 else fs[0] for z, fs in found.items()}

    def _close(self, orders: list[Order]) -> None:
        """From paths of one pair of ``may`` to those of any number.

        Events that reach each other are closed together, after all that they lead to.
        """
        tails, after = self._tails, self.after
        position = {x: i for i, x in enumerate(tails)}
        reach = closure([sum(1 << position[z] for z in after[u] if z in position) for u in tails])
        back = inverted(reach)
        seen = 0
        for i in sorted(range(len(tails)), key=lambda i: (reach[i] | 1 << i).bit_count()):
            if seen >> i & 1:
                continue
            together = reach[i] & back[i] | 1 << i
            seen |= together
            component = [tails[j] for j in bits(together)]
            if len(component) > 1:
                order = next((order for order in orders if self._by(order, component)), None)
                if order is None:
                    self._warshall(component)
                else:
                    self._leave(order, component)
            beyond = [tails[j] for j in bits(reach[i] & ~together)]
            for u in component:
                self._through(after[u], [(after[u][k], after[k]) for k in beyond if k in after[u]])

    def _by(self, order: Order, component: list[int]) -> bool:
        """Whether the events of ``component`` lead to each other by pairs of ``order`` only, and by all of these to the
        same events, so that one such pair stands for several."""
        members = {a for pair in order for a in pair}
        if not members.issuperset(component):
            return False
        together = sum(1 << u for u in component)
        heads: set[int] = set()
        for u in component:
            for v, f in self._may[u].items():
                if order.get((u, v)) == f:
                    heads.add(v)
                elif self._onward[v] & together:
                    return False
        return all(
            u == v or self._may[u].get(v, TRUE if self._onward[u] >> v & 1 else FALSE) == order[u, v]
            for u in component
            for v in heads
        ) and all(v == w or order[v, w] == TRUE for v in heads for w in bits(self._onward[v] & together))

    def _leave(self, order: Order, component: list[int]) -> None:
        """Add the paths that go on from a component, which is ordered, by a pair that is not of its ``order``."""
        leaving = {
            u: self._settled({v: f for v, f in self._may[u].items() if order.get((u, v)) != f}) for u in component
        }
        for u in component:
            self._through(self.after[u], [(self.after[u][k], leaving[k]) for k in component if k in self.after[u]])

    def _warshall(self, component: list[int]) -> None:
        for k in component:
            for u in component:
                through = self.after[u].get(k, FALSE)
                if through != FALSE and u != k:
                    self._through(self.after[u], [(through, self.after[k])])

    def _through(self, row: Row, onward: list[tuple[Formula, Row]]) -> None:
        """Add to ``row`` what the others lead to, each under its formula."""
        both = self._formulas.both
        for through, others in onward:
            for z, f in others.items():
                g = both(through, f)
                if g != FALSE:
                    known = row.get(z)
                    row[z] = g if known is None else -both(-known, -g)


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits of ``mask``, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def inverted(rows: list[int]) -> list[int]:
    """The inverse of bit rows."""
    result = [0] * len(rows)
    for x, row in enumerate(rows):
        bit = 1 << x
        for y in bits(row):
            result[y] |= bit
    return result


def closure(rows: list[int]) -> list[int]:
    """The transitive closure of bit rows: last events first where there is no cycle, else as Warshall does it."""
    found = _acyclic_closure(rows)
    if found is not None:
        return found
    reach = list(rows)
    for k in range(len(rows)):
        bit, onward = 1 << k, reach[k]
        if onward:
            reach = [row | onward if row & bit else row for row in reach]
    return reach


def _acyclic_closure(rows: list[int]) -> list[int] | None:
    """The transitive closure of bit rows, None if they have a cycle: depth first, and of what an event leads to no
    event is looked at that another one leads to which has been looked at."""
    reach: list[int] = [0] * len(rows)
    done = 0
    for start in range(len(rows)):
        if done >> start & 1:
            continue
        path, open_ = [start], 1 << start
        while path:
            x = path[-1]
            row = rows[x]
            if row & open_:
                return None
            if todo := row & ~done:
                y = todo.bit_length() - 1
                path.append(y)
                open_ |= 1 << y
                continue
            found, left = row, row
            while left:
                low = left & -left
                onward = reach[low.bit_length() - 1]
                found |= onward
                left &= ~(onward | low)
            reach[x] = found
            done |= 1 << x
            open_ ^= 1 << x
            path.pop()
    return reach
