"""All programs of a vocabulary with given sizes of threads as one propositional problem, and their executions.

Choices of the program: the form, location and address of each instruction, and which threads are together. Choices of
an execution: reads-from, coherence order, Fence-SC order. What the form of an instruction means is taken from the
events of the solver's side, so that a set of the models means the same in a space of programs as in one program.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise, permutations

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.relations.tags import tags_of
from ptxmm.generate.realize import instruction, realize
from ptxmm.generate.skeleton import Skeleton, Slot
from ptxmm.generate.vocabulary import Form, Vocabulary
from ptxmm.program.identity import EventId
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas
from ptxmm.relations.symbolic import SymbolicAlgebra


class Space:
    """The programs. ``constraints`` all hold exactly of the choices that make a program of the vocabulary; renamings
    of a program are left out as far as that is cheap.

    Instruction i has the events ``first(i)`` (a read or a fence) and ``second(i)`` (a write), which are the same where
    no form has both; location l has the initial write ``initial(l)``. ``presence`` is by event.
    """

    def __init__(self, words: Vocabulary, sizes: tuple[int, ...], locations: int) -> None:
        self.words = words
        self.sizes = sizes
        self.thread = [t for t, size in enumerate(sizes) for _ in range(size)]
        self.size = len(self.thread)
        self.locations = locations
        self.formulas = formulas = Formulas()
        self.constraints: list[Formula] = []
        self._halves = 2 if any(f.reads and f.writes for f in words.forms) else 1
        self._choices = 0
        self.exclusive: list[tuple[Formula, Formula]] = []
        self.forms = [self._one_of(len(words.forms)) for _ in range(self.size)]
        self.accesses = [self.form_where(i, _accesses) for i in range(self.size)]
        self.location: list[list[Formula]] = []
        self.name: list[Formula] = []
        for i in range(self.size):
            self.location.append(self._locations(i))
            self.name.append(self._name(i))
        self.together = {level: self._groups() for level in words.levels}
        self._nested()
        self.used = [formulas.any([self.location[i][x] for i in range(self.size)]) for x in range(locations)]
        self.presence = self._presence()
        self.algebra = SymbolicAlgebra(formulas, self.presence)
        self._tags = {form: _tags(form, words) for form in words.forms}
        self._sorted()
        self._shared()
        if words.narrow:
            self._narrow()

    # -- events --

    def first(self, i: int) -> int:
        """The read or fence of instruction ``i``."""
        return i * self._halves

    def second(self, i: int) -> int:
        """The write of instruction ``i``."""
        return i * self._halves + self._halves - 1

    def initial(self, x: int) -> int:
        """The initial write of location ``x``."""
        return self.size * self._halves + x

    def instruction_of(self, event: int) -> int:
        """The instruction that an event of a thread belongs to."""
        return event // self._halves

    @property
    def events(self) -> range:
        """The events of threads."""
        return range(self.size * self._halves)

    def tagged(self, tag: str) -> list[Formula]:
        """For each event of a thread, when it is in the set ``tag``."""
        having = {kinds: self._having(tag, kinds) for kinds in ("FR", "W", "FRW")}
        found = []
        for event in self.events:
            i = self.instruction_of(event)
            kinds = "FRW" if self._halves == 1 else "FR" if event == self.first(i) else "W"
            found.append(self.form_where(i, having[kinds].__contains__))
        return found

    def _having(self, tag: str, kinds: str) -> set[Form]:
        """The forms with an event of ``kinds`` in the set ``tag``."""
        return {form for form, events in self._tags.items() if any(tag in tags for k, tags in events if k in kinds)}

    def _presence(self) -> list[Formula]:
        found = []
        for event in self.events:
            i = self.instruction_of(event)
            if self._halves == 1:
                found.append(TRUE)
            elif event == self.second(i):
                found.append(self.form_where(i, _writes))
            else:
                found.append(-self.form_where(i, _only_writes))
        return found + self.used

    # -- relations between instructions --

    def same_location(self, i: int, j: int) -> Formula:
        """When both have an address, of one location."""
        both = self.formulas.both
        return self.formulas.any([both(a, b) for a, b in zip(self.location[i], self.location[j], strict=True)])

    def same_name(self, i: int, j: int) -> Formula:
        """When two accesses of one location use the same address of it."""
        a, b = self.name[i], self.name[j]
        return self.formulas.either(self.formulas.both(a, b), self.formulas.both(-a, -b))

    def near(self, scope: str, t: int, u: int) -> Formula:
        """When ``scope`` around thread ``t`` includes thread ``u``."""
        if t == u or scope not in self.together:
            return TRUE if t == u or scope in self.words.scopes[-1:] else FALSE
        return self.together[scope][t, u]

    def form_where(self, i: int, holds: Callable[[Form], bool]) -> Formula:
        """When the form of instruction ``i`` is one that ``holds`` is true of."""
        chosen = [when for form, when in zip(self.words.forms, self.forms[i], strict=True) if holds(form)]
        return TRUE if len(chosen) == len(self.forms[i]) else self.formulas.any(chosen)

    # -- the choices of a program --

    def new_choice(self) -> int:
        """A number for formulas of which at most one holds."""
        self._choices += 1
        return self._choices

    def _one_of(self, count: int) -> list[Formula]:
        """Formulas of which exactly one holds."""
        if count == 1:
            return [TRUE]
        choice = self.new_choice()
        found = [self.formulas.variable(choice) for _ in range(count)]
        self.constraints.append(self.formulas.any(found))
        self.exclusive += combinations(found, 2)
        return found

    def _locations(self, i: int) -> list[Formula]:
        formulas, access = self.formulas, self.accesses[i]
        choice = self.new_choice()
        found = [formulas.variable(choice) for _ in range(self.locations)]
        self.exclusive += combinations(found, 2)
        for x, where in enumerate(found):
            self.constraints.append(formulas.either(-where, access))
            if x:  # locations are numbered as they first occur
                earlier = [self.location[j][x - 1] for j in range(i)] if i else []
                self.constraints.append(formulas.any([-where, *earlier]))
        self.constraints.append(formulas.any([-access, *found]))
        return found

    def _name(self, i: int) -> Formula:
        """When ``i`` uses the alias of its location; the first access never does."""
        if not self.words.aliases:
            return FALSE
        formulas, name = self.formulas, self.formulas.variable()
        self.constraints.append(formulas.either(-name, self.accesses[i]))
        earlier = formulas.any([self.same_location(i, j) for j in range(i)])
        self.constraints.append(formulas.either(-name, earlier))
        return name

    def _groups(self) -> dict[tuple[int, int], Formula]:
        """An equivalence relation on threads."""
        formulas, count = self.formulas, len(self.sizes)
        found: dict[tuple[int, int], Formula] = {}
        for t, u in combinations(range(count), 2):
            found[t, u] = found[u, t] = formulas.variable()
        for t, u, v in permutations(range(count), 3):
            if t < v:
                self.constraints.append(formulas.any([-found[t, u], -found[u, v], found[t, v]]))
        return found

    def _nested(self) -> None:
        """Threads that are apart at one level are apart at those inside it."""
        for outer, inner in pairwise(self.words.levels):
            for pair, when in self.together[inner].items():
                self.constraints.append(self.formulas.either(-when, self.together[outer][pair]))

    def _sorted(self) -> None:
        """Of threads of one length, the forms of a later one are not before those of an earlier one, nor, where their
        forms are equal, its locations.

        Some renaming of a program is like this: of those with sorted forms take the one with the least sequence of
        locations, numbered as they first occur. If a thread came before one with equal forms and earlier locations,
        then at the first difference the later one has a location that has occurred already, so that exchanging
        the two would make the sequence less.
        """
        start = [sum(self.sizes[:t]) for t in range(len(self.sizes))]
        for t in range(len(self.sizes) - 1):
            if self.sizes[t] != self.sizes[t + 1]:
                continue
            pairs = [(start[t] + p, start[t + 1] + p) for p in range(self.sizes[t])]
            equal = self._not_before([(self.forms[i], self.forms[j]) for i, j in pairs], TRUE)
            self._not_before([(self.location[i], self.location[j]) for i, j in pairs], equal)

    def _not_before(self, pairs: list[tuple[list[Formula], list[Formula]]], when: Formula) -> Formula:
        """Require that, ``when``, the second numbers are not lexicographically less than the first ones; a number is
        given by when it is each. Returns when all are equal."""
        formulas = self.formulas
        for one, other in pairs:
            for k in range(1, len(one)):
                # If the other one is among the first k, so is the one.
                self.constraints.append(formulas.any([-when, -formulas.any(other[:k]), formulas.any(one[:k])]))
            same = formulas.any([formulas.both(a, b) for a, b in zip(one, other, strict=True)])
            none = formulas.all([-f for f in (*one, *other)])
            when = formulas.both(when, formulas.either(same, none))
        return when

    def _shared(self) -> None:
        """A location is accessed at least twice."""
        for x in range(self.locations):
            for i in range(self.size):
                others = [self.location[j][x] for j in range(self.size) if j != i]
                self.constraints.append(self.formulas.any([-self.location[i][x], *others]))

    def _narrow(self) -> None:
        """A scope includes more threads than the next narrower one."""
        scopes = self.words.scopes
        for i in range(self.size):
            t = self.thread[i]
            for narrower, scope in pairwise(scopes):
                more = [
                    self.formulas.both(self.near(scope, t, u), -self.near(narrower, t, u))
                    for u in range(len(self.sizes))
                    if u != t
                ]
                wide = {form for form in self.words.forms if form.scope == scope}
                has = self.form_where(i, wide.__contains__)
                self.constraints.append(self.formulas.any([-has, *more]))

    # -- reading a program --

    def skeleton(self, value: Callable[[Formula], bool]) -> Skeleton:
        """The program of an assignment, which ``value`` reads."""
        bodies: list[list[Slot]] = [[] for _ in self.sizes]
        for i in range(self.size):
            form = next(f for f, when in zip(self.words.forms, self.forms[i], strict=True) if value(when))
            location = next((x for x, when in enumerate(self.location[i]) if value(when)), -1)
            bodies[self.thread[i]].append(Slot(form, location, int(value(self.name[i]))))
        places = []
        for t in range(len(self.sizes)):
            path = tuple(
                next(u for u in range(t + 1) if u == t or value(self.together[level][t, u]))
                for level in self.words.levels
            )
            places.append(path)
        return Skeleton(tuple(map(tuple, bodies)), tuple(places))

    def is_program(self, skeleton: Skeleton) -> Formula:
        """When the program is this one, whose threads and locations are numbered as those of the space."""
        parts: list[Formula] = []
        slots = [slot for body in skeleton.threads for slot in body]
        for i, slot in enumerate(slots):
            parts.append(self.forms[i][self.words.forms.index(slot.form)])
            if slot.location >= 0:
                parts.append(self.location[i][slot.location])
                parts.append(self.name[i] if slot.name else -self.name[i])
        for depth, level in enumerate(self.words.levels, 1):
            for t, u in combinations(range(len(self.sizes)), 2):
                alike = skeleton.places[t][:depth] == skeleton.places[u][:depth]
                parts.append(self.together[level][t, u] if alike else -self.together[level][t, u])
        return self.formulas.all(parts)


def _accesses(form: Form) -> bool:
    return form.accesses


def _writes(form: Form) -> bool:
    return form.writes


def _only_writes(form: Form) -> bool:
    return form.kind == "st"


def _tags(form: Form, words: Vocabulary) -> tuple[tuple[str, frozenset[str]], ...]:
    """The events of an instruction of this form, by R, W or F, with the sets that each is in."""
    slot = Slot(form, 0 if form.accesses else -1)
    test = realize(Skeleton(((slot,),), ((0,) * len(words.levels),)), words, "")
    op = instruction(slot, 1, "r0")
    kinds = [k for k, has in (("R", form.reads), ("W", form.writes)) if has] or ["AF" if form.kind == "alias" else "F"]
    return tuple((kind[-1], frozenset(tags_of(test, Event(0, kind, 0, EventId(0, 0), TRUE, op)))) for kind in kinds)
