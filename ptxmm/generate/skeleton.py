"""Programs without names: what they are, and their canonical form up to threads, locations and places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, permutations, product

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.generate.vocabulary import KINDS, ORDERS, SCOPES, Form, Vocabulary, thread_sizes


class Slot(Struct, frozen=True):
    """An instruction: ``location`` is a number (-1: it has no address), ``name`` which address of the location it uses
    (0, or 1 for the alias)."""

    form: Form
    location: int = -1
    name: int = 0


Body = tuple[Slot, ...]
Place = tuple[int, ...]
"""The groups that a thread is in, the outermost first: threads with equal beginnings are together that far."""


class Skeleton(Struct, frozen=True):
    """A program: ``places[t]`` has a number for each level of the vocabulary."""

    threads: tuple[Body, ...]
    places: tuple[Place, ...]

    @property
    def size(self) -> int:
        """The number of instructions."""
        return sum(map(len, self.threads))


_Key = tuple[object, ...]


def canonical(skeleton: Skeleton) -> Skeleton:
    """The program that stands for all that are ``skeleton`` with its threads, locations, addresses of a location or
    places renamed."""
    return min(_orders(skeleton), key=_key)


def _orders(skeleton: Skeleton) -> Iterator[Skeleton]:
    """``skeleton`` with its threads in every order that sorts them by length and forms, everything else numbered as
    it first occurs."""
    numbers = sorted(range(len(skeleton.threads)), key=lambda t: _forms(skeleton.threads[t]))
    ties = [list(group) for _, group in groupby(numbers, key=lambda t: _forms(skeleton.threads[t]))]
    for choice in product(*(permutations(tie) for tie in ties)):
        order = [t for part in choice for t in part]
        yield _numbered([skeleton.threads[t] for t in order], [skeleton.places[t] for t in order])


def _forms(body: Body) -> tuple[object, ...]:
    return (-len(body), *((s.form.kind, s.form.order, s.form.scope or "") for s in body))


def _numbered(threads: Sequence[Body], places: Sequence[Place]) -> Skeleton:
    locations: dict[int, int] = {}
    first: dict[int, int] = {}  # the address of each location that occurs first
    bodies = []
    for body in threads:
        slots = []
        for slot in body:
            if slot.location < 0:
                slots.append(slot)
                continue
            location = locations.setdefault(slot.location, len(locations))
            name = 0 if first.setdefault(slot.location, slot.name) == slot.name else 1
            slots.append(Slot(slot.form, location, name))
        bodies.append(tuple(slots))
    groups: dict[Place, dict[int, int]] = {}
    renamed: list[Place] = []
    for place in places:
        path: Place = ()
        for level, number in enumerate(place):
            inside = groups.setdefault(place[:level], {})
            path = (*path, inside.setdefault(number, len(inside)))
        renamed.append(path)
    return Skeleton(tuple(bodies), tuple(renamed))


def _key(skeleton: Skeleton) -> _Key:
    bodies = tuple((*_forms(body), *((s.location, s.name) for s in body)) for body in skeleton.threads)
    return (bodies, skeleton.places)


def belongs(skeleton: Skeleton, words: Vocabulary) -> bool:
    """Whether ``skeleton`` is a program of the vocabulary."""
    slots = [slot for body in skeleton.threads for slot in body]
    counts: dict[int, int] = {}
    for slot in slots:
        if slot.form not in words.forms or (slot.name and not words.aliases):
            return False
        if slot.location >= 0:
            counts[slot.location] = counts.get(slot.location, 0) + 1
    if any(count < 2 for count in counts.values()) or not all(skeleton.threads):
        return False
    if words.locations is not None and len(counts) > words.locations:
        return False
    if words.threads is not None and len(skeleton.threads) > words.threads:
        return False
    return not words.narrow or all(
        is_narrow(skeleton.places, t, slot.form.scope, words)
        for t, body in enumerate(skeleton.threads)
        for slot in body
    )


def is_narrow(places: Sequence[Place], thread: int, scope: str | None, words: Vocabulary) -> bool:
    """Whether no narrower scope of the vocabulary includes the same threads as ``scope`` around ``thread``."""
    if scope is None or scope == words.scopes[0]:
        return True
    narrower = words.scopes[words.scopes.index(scope) - 1]
    return _around(places, thread, scope, words) != _around(places, thread, narrower, words)


def _around(places: Sequence[Place], thread: int, scope: str, words: Vocabulary) -> list[int]:
    """The threads that a scope includes."""
    depth = words.levels.index(scope) + 1 if scope in words.levels else 0
    return [u for u, place in enumerate(places) if place[:depth] == places[thread][:depth]]


def programs(words: Vocabulary, size: int) -> Iterator[Skeleton]:
    """Every program of ``size`` instructions, each once up to renaming, in its canonical form."""
    for sizes in thread_sizes(size, words.threads):
        seen: set[Skeleton] = set()
        for bodies in _bodies(words, sizes):
            for places in _places(len(sizes), len(words.levels)):
                skeleton = Skeleton(bodies, places)
                if belongs(skeleton, words):
                    best = canonical(skeleton)
                    if best not in seen:
                        seen.add(best)
                        yield best


def _bodies(words: Vocabulary, sizes: tuple[int, ...]) -> Iterator[tuple[Body, ...]]:
    """Threads of these sizes, those of one size sorted by their forms, locations numbered as they first occur."""

    def forms(position: int, done: tuple[tuple[Form, ...], ...]) -> Iterator[tuple[tuple[Form, ...], ...]]:
        if position == len(sizes):
            yield done
            return
        for body in product(words.forms, repeat=sizes[position]):
            numbers = [words.forms.index(f) for f in body]
            if done and len(done[-1]) == len(body) and numbers < [words.forms.index(f) for f in done[-1]]:
                continue
            yield from forms(position + 1, (*done, body))

    for chosen in forms(0, ()):
        flat = [form for body in chosen for form in body]
        for slots in _located(flat, (), 0, words.aliases):
            rest = iter(slots)
            yield tuple(tuple(next(rest) for _ in body) for body in chosen)


def _located(forms: Sequence[Form], done: Body, used: int, aliases: bool) -> Iterator[Body]:
    if len(done) == len(forms):
        yield done
        return
    form = forms[len(done)]
    if not form.accesses:
        yield from _located(forms, (*done, Slot(form)), used, aliases)
        return
    for location in range(used + 1):
        seen = any(slot.location == location for slot in done)
        for name in range(2 if aliases and seen else 1):
            slot = Slot(form, location, name)
            yield from _located(forms, (*done, slot), max(used, location + 1), aliases)


def _places(threads: int, levels: int) -> Iterator[tuple[Place, ...]]:
    """Every way to put threads together or apart at each level; groups are numbered as they first occur."""

    def extend(done: tuple[Place, ...]) -> Iterator[tuple[Place, ...]]:
        if len(done) == threads:
            yield done
            return
        for path in _paths(done, (), levels):
            yield from extend((*done, path))

    yield from extend(())


def _paths(done: tuple[Place, ...], path: Place, levels: int) -> Iterator[Place]:
    if len(path) == levels:
        yield path
        return
    inside = {place[len(path)] for place in done if place[: len(path)] == path}
    for number in range(len(inside) + 1):
        yield from _paths(done, (*path, number), levels)


_PLAINER = {"ld": ("ld",), "st": ("st",), "atom": ("ld", "st", "atom"), "red": ("st", "red"), "fence": ("fence",)}
"""By the kind of an instruction those that may stand for it."""


def weaker(skeleton: Skeleton, place: tuple[int, int], words: Vocabulary) -> Iterator[Skeleton]:
    """``skeleton`` with the instruction at ``place`` (thread, position) in a weaker form, the weakest first: a load or
    store for an atomic operation, a weaker order, a narrower scope."""
    t, i = place
    body = skeleton.threads[t]
    old = body[i].form
    forms = [f for f in words.forms if _strength(f) < _strength(old) and f.kind in _PLAINER.get(old.kind, ())]
    for form in sorted(forms, key=_strength):
        changed = (*body[:i], replace(body[i], form=form), *body[i + 1 :])
        yield replace(skeleton, threads=(*skeleton.threads[:t], changed, *skeleton.threads[t + 1 :]))


def _strength(form: Form) -> tuple[int, int, int]:
    return (
        0 if form.kind in ("ld", "st") else KINDS.index(form.kind),
        ORDERS.index(form.order) if form.order else 0,
        SCOPES.index(form.scope) if form.scope is not None else -1,
    )
