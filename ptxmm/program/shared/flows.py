"""What each register and part of memory of a test may be made of, without the order of instructions: what slicing
(Weiser 1984) goes by."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from ptxmm.program.condition import MemoryTerm, RegisterTerm, Term
from ptxmm.program.graph import graph_of, post_dominators, reach
from ptxmm.program.shared.idempotent import idempotent_atomics
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.shared.undetermined import locations
from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read, names_written, uses
from ptxmm.ptx.ops import PREDICATE, Address, Op, Reg, Sym

_Node = tuple[int, Hashable]
"""A register of a thread, or (thread -1) a part of the contents of memory."""

_EXCHANGED: _Node = (-1, "exchanged between lanes")
_MATRICES: _Node = (-1, "rows of matrices")
_READ, _WRITTEN = "read somewhere", "written somewhere"
"""With a state space, or None for any: what an access there reads or writes whose place is not known."""


def is_open(op: Op) -> bool:
    """Whether what ``op`` gives is not worked out."""
    return (
        (isinstance(op, ops.Opaque) and not op.free)
        or (isinstance(op, ops.Wmma) and op.instruction == "mma")
        or (isinstance(op, ops.Wgmma) and bool(op.matrices))
        or (isinstance(op, ops.WarpExchange) and op.absent)
    )


class Flow:
    """What each register and part of memory may be made of.

    ``forks``: branches are seen whose sides only give registers values; else what they give is made of their guards.
    ``gives``: for each thread the instructions that may go unseen, with what they give values; ``moves``: those that
    move values, with where to; ``holds``: what the values of accesses are made of; ``sinks``: what is seen whatever is
    asked for; ``parts``: of each physical object, as the accesses whose places are known divide it, where each begins;
    ``written``: the objects that are written at addresses which name them, None if others may be.
    """

    def __init__(self, test: Test, forks: bool = True) -> None:
        self.test = test
        self.forks = forks
        self.makers: dict[_Node, set[_Node]] = defaultdict(set)
        self.sinks: set[_Node] = set()
        self.gives: list[dict[int, list[_Node]]] = [{} for _ in test.threads]
        self.moves: list[dict[int, list[_Node]]] = [{} for _ in test.threads]
        self.holds: list[dict[int, set[_Node]]] = [{} for _ in test.threads]
        self.known = [known_addresses(thread, test.objects) for thread in test.threads]
        self.written = self._written()
        self.parts = self._divided()
        for item in test.objects.values():
            for node in self._within(item, 0, None):
                for space in (None, item.space):
                    self.makers[-1, (_READ, space)].add(node)
                    self.makers[node].add((-1, (_WRITTEN, space)))
        for number, (thread, kept) in enumerate(zip(test.threads, idempotent_atomics(test), strict=True)):
            self._number = number
            self._decided = {} if forks else sides(thread.body)
            for pc, op in enumerate(thread.body):
                self._add(pc, op, pc in kept)

    def seen(self, terms: Iterable[Term], free: Collection[_Node] = ()) -> set[_Node]:
        """What is seen if ``terms`` are asked for, where those that are ``free`` are made of nothing."""
        found = set(self.sinks)
        for term in terms:
            if isinstance(term, RegisterTerm):
                found.add((term.thread, term.register))
            elif isinstance(term, MemoryTerm):
                item = self.test.objects[term.key]
                found |= self._within(item, term.index * item.type.bytes, item.type.bytes)
        return _closed(
            found, {node: of for node, of in self.makers.items() if node not in free} if free else self.makers
        )

    def comparisons(self) -> dict[tuple[int, int], list[_Node]]:
        """The instructions, by thread and index, that give predicates made of results that are not worked out."""
        made = self.made_of(self.opened())
        return {
            (number, pc): [(number, name) for name in names_written(op)]
            for number, thread in enumerate(self.test.threads)
            for pc, op in enumerate(thread.body)
            if (is_open(op) and isinstance(op, ops.Opaque) and op.result == PREDICATE)
            or (
                isinstance(op, ops.SetPredicate)
                and any((number, name) in made for name, type_ in uses(op) if type_ != PREDICATE)
            )
        }

    def given(self, sites: Iterable[tuple[int, int]]) -> set[_Node]:
        """The registers that nothing but the instructions ``sites`` gives values."""
        chosen = frozenset(sites)
        by: dict[bool, set[_Node]] = {True: set(), False: set()}
        for number, thread in enumerate(self.test.threads):
            for pc, op in enumerate(thread.body):
                by[(number, pc) in chosen].update((number, name) for name in names_written(op))
        return by[True] - by[False]

    def opened(self) -> list[_Node]:
        """The results that are not worked out."""
        return [
            (number, name)
            for number, thread in enumerate(self.test.threads)
            for op in thread.body
            if is_open(op)
            for name in names_written(op)
        ]

    def made_of(self, nodes: Iterable[_Node]) -> set[_Node]:
        """What may be made of ``nodes``."""
        onward: dict[_Node, set[_Node]] = defaultdict(set)
        for node, given in self.makers.items():
            for one in given:
                onward[one].add(node)
        return _closed(set(nodes), onward)

    def mattering(self) -> Iterator[tuple[int, _Node]]:
        """The registers, each with its thread, that are written to memory or seen whatever is asked for."""
        nodes = set(self.sinks).union(*(of for holds in self.holds for of in holds.values()))
        return ((node[0], node) for node in nodes if node[0] >= 0)

    def local(self, node: _Node) -> set[_Node]:
        """What a register may be made of, up to what its thread reads."""
        found, waiting = {node}, [node]
        while waiting:
            at = waiting.pop()
            if at[0] >= 0:
                more = self.makers.get(at, set()) - found
                found |= more
                waiting += more
        return found

    def given_by_others(self, number: int) -> set[_Node]:
        """What a thread may read that another one may write."""
        found: set[_Node] = {_EXCHANGED, _MATRICES}
        for other, thread in enumerate(self.test.threads):
            for touch in (touch for op in thread.body for touch in ops.touched(op) if other != number and touch.writes):
                where = self._known(other, touch.address)
                for item in self.test.objects.values() if where is None else (where[0],):
                    found |= self._within(item, 0, None)
                    found |= {(-1, (_READ, space)) for space in (None, item.space)}
        return found

    def hidden(self, seen: set[_Node]) -> Iterator[str]:
        """The physical objects no part of which is in ``seen``."""
        for key, begins in self.parts.items():
            if seen.isdisjoint((-1, (key, begin)) for begin in begins):
                yield key

    def _written(self) -> set[str] | None:
        """The physical objects that are written at addresses which name them; None if others may be."""
        found: set[str] = set()
        for number, thread in enumerate(self.test.threads):
            for op in thread.body:
                if isinstance(op, ops.BulkCopy) and (op.dst is None or op.mask is not None):
                    return None
                for touch in ops.touched(op):
                    if touch.writes:
                        where = self._known(number, touch.address)
                        if where is None:
                            return None
                        found.update(locations(where[0]))
        return found

    def _divided(self) -> dict[str, list[int]]:
        borders: dict[str, set[int]] = {}
        for item in self.test.objects.values():
            for key in locations(item):
                borders.setdefault(key, {0})
        for number, thread in enumerate(self.test.threads):
            for op in thread.body:
                for touch in ops.touched(op):
                    where = self._known(number, touch.address)
                    if where is not None and touch.size is not None:
                        item, begin = where
                        for key in locations(item):
                            borders[key].update(b for b in (begin, begin + touch.size) if b < item.size)
        return {key: sorted(found) for key, found in borders.items()}

    def _known(self, number: int, address: Address) -> tuple[MemoryObject, int] | None:
        """The object that an access is of, and where it begins, if its address is that of one variable."""
        base = address.base
        if isinstance(base, Reg):
            base = self.known[number].get(base.name, base)
        if isinstance(base, Sym):
            item, begin = self.test.objects[base.name], base.offset + address.offset
            if 0 <= begin < item.size:
                return item, begin
        return None

    def _within(self, item: MemoryObject, begin: int, size: int | None) -> set[_Node]:
        """The parts of ``item`` that have a byte of so many (None: all) from ``begin`` on."""
        found: set[_Node] = set()
        for key in locations(item):
            begins = self.parts[key]
            if size is not None:
                ends = len(begins) - (begin >= item.size)
                begins = begins[max(0, bisect_right(begins, begin) - 1) : min(ends, bisect_left(begins, begin + size))]
            found.update((-1, (key, start)) for start in begins)
        return found

    def _add(self, pc: int, op: Op, compared: bool) -> None:
        results: list[_Node] = [(self._number, name) for name in names_written(op)]
        read: list[_Node] = [(self._number, name) for name in names_read(op)]
        match op:
            case ops.Alu(op="div" | "rem" | "fns", type=type_) if type_.kind != "f":  # some operands have no result
                self.sinks.update(read)
            case ops.Opaque(free=True):  # what it is made of decides nothing, but whether it gives anything does
                self._guard(op)
            case (
                ops.Alu()
                | ops.AluPair()
                | ops.Convert()
                | ops.SetPredicate()
                | ops.Select()
                | ops.Pack()
                | ops.Unpack()
                | ops.Opaque()
            ):
                self._gives(pc, results, read)
            case ops.Wmma():  # whether it is executed matters to the others of its warp
                self._gives(pc, results, read)
                self._guard(op)
            case ops.Load():
                places = self._at(op, op.address, _READ)
                self._gives(pc, results, places)
                self._holds(pc, places)
                self.sinks.update(self._deciding(op))
            case ops.Wgmma() if op.matrices:
                places = {node for matrix in op.matrices for place, _ in matrix for node in self._at(op, place, _READ)}
                self._gives(pc, results, [*read, *places])
                self._holds(pc, places)
                self._guard(op)
            case ops.LoadMatrix() | ops.StoreMatrix() if op.fragments:
                self._fragments(pc, op, results, read)
                self._guard(op)
            case ops.LoadMatrix() | ops.StoreMatrix():
                self._rows(pc, op, results, read)
            case ops.Store():
                self._copied(pc, self._at(op, op.address, _WRITTEN), set(read))
                self.sinks.update(self._deciding(op))
            case ops.Atomic() if op.op != "cas" and not compared:
                self._atomic(pc, op, results, read)
            case ops.Atomic():  # what it compares decides whether it writes
                self.sinks.update(read, self._at(op, op.address, _READ))
            case ops.CopyAsync():
                self._copied(pc, self._at(op, op.dst, _WRITTEN), self._at(op, op.src, _READ))
                self.sinks.update(read)
            case ops.BulkCopy():
                self._bulk(pc, op)
                self.sinks.update(read)
            case ops.AsyncStore():
                self._async_store(pc, op)
            case ops.WarpExchange() if op.op.partition(".")[0] in ("shfl", "redux", "match", "vote"):
                self._exchange(pc, op, results)
            case ops.Branch() if pc in self._decided:
                self._made([(self._number, name) for name in self._decided[pc]], read)
            case ops.Branch() | ops.Exit():
                self.sinks.update(read)
            case ops.CopyAsyncArrive() | ops.Discard() | ops.StoreBulk():  # what they write is made of nothing
                self.sinks.update(read)
            case _ if isinstance(op, ops.Addressless | ops.MbarrierOp):
                self.sinks.update(read)
            case _:
                self.sinks.update(read, [(-1, (_READ, None))])

    def _rows(
        self, pc: int, op: ops.LoadMatrix | ops.StoreMatrix, results: Sequence[_Node], read: Sequence[_Node]
    ) -> None:
        """Rows that other lanes name."""
        if isinstance(op, ops.LoadMatrix):
            places = self._at(op, op.address, _READ)
            self._made([_MATRICES], places)
            self._moves(pc, results, {_MATRICES})
            self._holds(pc, places)
        else:
            self._made([_MATRICES], read)
            self._made(self._at(op, op.address, _WRITTEN), [_MATRICES])
            self._holds(pc, [_MATRICES])
        self.sinks.update(self._deciding(op))

    def _atomic(self, pc: int, op: ops.Atomic, results: Sequence[_Node], read: Sequence[_Node]) -> None:
        before, places = self._at(op, op.address, _READ), self._at(op, op.address, _WRITTEN)
        self.gives[self._number][pc] = [*results, *places]
        self._made(results, [*before, *read])
        # What it changes somewhere is made of what was there.
        stays = self._known(self._number, op.address) is None and self._apart(ops.access_bytes(op))
        self._made(places, read if stays else [*before, *read])
        self._holds(pc, [*before, *read])
        self.sinks.update(self._deciding(op))

    def _async_store(self, pc: int, op: ops.AsyncStore) -> None:
        before = set() if op.reduction is None else self._at(op, op.address, _READ)
        values: set[_Node] = {(self._number, item.name) for item in op.values if isinstance(item, Reg)}
        self._copied(pc, self._at(op, op.address, _WRITTEN), values | before)
        self.sinks.update(self._deciding(op))
        if isinstance(op.mbarrier.base, Reg):
            self.sinks.add((self._number, op.mbarrier.base.name))

    def _exchange(self, pc: int, op: ops.WarpExchange, results: Sequence[_Node]) -> None:
        given, *which = [(self._number, item.name) if isinstance(item, Reg) else None for item in op.operands]
        self._made([_EXCHANGED], {given} if given is not None else set())
        own = 1 if op.op.startswith("shfl.") else 2  # the predicate of a shuffle is about lanes alone
        self._moves(pc, results[:own], {_EXCHANGED})
        self.sinks.update(node for node in which if node is not None)
        self._guard(op)

    def _apart(self, size: int) -> bool:
        """Whether no aligned access of ``size`` bytes is of two parts."""
        return not any(begin % size for begins in self.parts.values() for begin in begins)

    def _fragments(
        self, pc: int, op: ops.LoadMatrix | ops.StoreMatrix, results: Sequence[_Node], read: Sequence[_Node]
    ) -> None:
        """What a lane gets of the rows of its warp, or holds of them."""
        if isinstance(op, ops.LoadMatrix):
            places = {node for place in op.fragments for node in self._at(op, place, _READ)}
            self._gives(pc, results, places)
            self._holds(pc, places)
        else:
            self._copied(pc, {node for place in op.fragments for node in self._at(op, place, _WRITTEN)}, set(read))

    def _bulk(self, pc: int, op: ops.BulkCopy) -> None:
        """A copy from shared memory or to it; the other side may be the tensor of a map."""
        source = self._tensor(op, _READ) if op.src is None else self._at(op, op.src, _READ)
        target = self._tensor(op, _WRITTEN) if op.dst is None else self._at(op, op.dst, _WRITTEN)
        if op.mask is not None:  # the same place in other CTAs
            target = {(-1, (_WRITTEN, None))}
        if op.reduction is not None and op.dst is not None:
            source = source | self._at(op, op.dst, _READ)
        elif op.reduction is not None:
            source = source | self._tensor(op, _READ)
        self._copied(pc, target, source)
        if op.tensormap is not None:
            self.sinks.update(self._at(op, op.tensormap, _READ))

    def _tensor(self, op: ops.BulkCopy, anywhere: str) -> set[_Node]:
        """The tensor of the map of a copy."""
        assert op.tensormap is not None
        where = self._known(self._number, op.tensormap)
        tensor = None if where is None or not self._constant(where[0]) else where[0].tensormap
        if tensor is None:
            return {(-1, (anywhere, "global"))}
        return self._within(self.test.objects[tensor.target], 0, None)

    def _constant(self, item: MemoryObject) -> bool:
        """Whether nothing can write ``item``."""
        if item.space in ("const", "param"):
            return True
        return self.written is not None and self.written.isdisjoint(locations(item))

    def _copied(self, pc: int, to: Iterable[_Node], of: set[_Node]) -> None:
        self._moves(pc, to, of)
        self._holds(pc, of)

    def _moves(self, pc: int, to: Iterable[_Node], of: set[_Node]) -> None:
        self.moves[self._number][pc] = list(to)
        self._made(self.moves[self._number][pc], of)

    def _guard(self, op: Op) -> None:
        if op.guard is not None:
            self.sinks.add((self._number, op.guard.register))

    def _gives(self, pc: int, results: Sequence[_Node], of: Iterable[_Node]) -> None:
        self.gives[self._number][pc] = list(results)
        self._made(results, of)

    def _holds(self, pc: int, of: Iterable[_Node]) -> None:
        self.holds[self._number][pc] = set(of)

    def _made(self, results: Iterable[_Node], of: Iterable[_Node]) -> None:
        given = set(of)
        for node in results:
            self.makers[node] |= given

    def _deciding(
        self, op: ops.Load | ops.Store | ops.Atomic | ops.LoadMatrix | ops.StoreMatrix | ops.AsyncStore
    ) -> Iterator[_Node]:
        """The guard and the base of the address."""
        if op.guard is not None:
            yield self._number, op.guard.register
        if isinstance(op.address.base, Reg):
            yield self._number, op.address.base.name

    def _at(self, op: Op, address: Address, anywhere: str) -> set[_Node]:
        """The parts of memory that ``op`` may access at ``address``; ``anywhere`` if that is not of one variable."""
        touches = [touch for touch in ops.touched(op) if touch.address is address]
        touch = touches[0] if len(touches) == 1 else None
        where = self._known(self._number, address)
        if where is not None:
            return self._within(*where, None if touch is None else touch.size)
        space = None if touch is None or touch.rule.form is None else touch.rule.form.partition("::")[0]
        return {(-1, (anywhere, space))}


def sides(body: Sequence[Op]) -> dict[int, frozenset[str]]:
    """The branches of a thread both of whose sides, up to where they meet, only give registers values, with these
    registers."""
    if not any(isinstance(op, ops.Branch) and op.guard is not None for op in body):
        return {}
    graph = graph_of(body)
    meets = post_dominators(graph)
    found: dict[int, frozenset[str]] = {}
    for pc, op in enumerate(body):
        if isinstance(op, ops.Branch) and op.guard is not None and pc in meets:
            inside = reach(graph.after, (node for node in graph.after[pc] if node != meets[pc]), meets[pc]) - {
                meets[pc]
            }
            if all(_only_computes(body[node]) and min(graph.after[node]) > node > pc for node in inside):
                found[pc] = frozenset(name for node in inside for name in names_written(body[node]))
    return found


def _only_computes(op: Op) -> bool:
    """Whether ``op`` does nothing but give registers values, whatever it is given."""
    if isinstance(op, ops.Alu):
        return op.op not in ("div", "rem", "fns") or op.type.kind == "f"
    plain = ops.Convert | ops.SetPredicate | ops.Select | ops.Pack | ops.Unpack | ops.Opaque | ops.Branch
    return isinstance(op, plain)


def _closed(start: set[_Node], onward: Mapping[_Node, Iterable[_Node]]) -> set[_Node]:
    """``start``, and all that leads ``onward`` to."""
    found, waiting = set(start), list(start)
    while waiting:
        more = set(onward.get(waiting.pop(), ())) - found
        found |= more
        waiting += more
    return found
