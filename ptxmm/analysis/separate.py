"""The smallest program of a vocabulary that two models disagree on: some final state is allowed by one of them only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.compare import model_names
from ptxmm.analysis.observe import exactly, observed
from ptxmm.analysis.result import TIMEOUT, Note, Status
from ptxmm.analysis.search import Question, final_states, values
from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.generate.problem import Candidate, Orders, Separation
from ptxmm.generate.realize import canonical_name, location_name, realize
from ptxmm.generate.skeleton import Skeleton, belongs, canonical, weaker
from ptxmm.generate.vocabulary import KINDS, ORDERS, SCOPES, Vocabulary, thread_sizes, vocabulary
from ptxmm.program.condition import Condition, MemoryTerm, RegisterTerm, State
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test

MOST = 8
"""The largest programs that can be asked for: beyond, values would not fit into a byte."""

_SCOPE_TAGS = frozenset(("CTA", "CLUSTER", "GPU", "SYS"))


class Step(Struct, frozen=True):
    """How far a search for a separating program has got: the last of ``number`` of ``total`` steps was programs with
    threads of these ``sizes``. ``searched``: no program of so many instructions separates the models. ``compared``: how
    many programs had to be compared one by one. ``program``: the program found, which ends the search."""

    sizes: tuple[int, ...]
    number: int
    total: int
    searched: int
    compared: int
    program: Test | None = None


class SeparateResult(Struct, frozen=True, tag_field="analysis", tag="separate"):
    """The search for a program of ``vocabulary`` with at most ``most`` instructions that separates ``model`` from
    ``other``.

    ``program`` is one of the smallest, of ``size`` instructions, with a condition that only one of the models allows;
    None if there is none, or if the time limit ended the search (``status`` timeout). ``separated``: whether there is
    one; None where the search was not complete. ``searched``: no program of at most so many instructions
    separates the models. ``compared``: how many programs had to be compared one by one.
    """

    file: str
    test: str
    model: str
    other: str
    status: Status
    vocabulary: Vocabulary
    most: int
    separated: bool | None
    program: Test | None
    size: int | None
    searched: int
    compared: int
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> bool | None:
        """Whether the models were found to differ; None where the search was not complete."""
        return self.separated


def common_vocabulary(
    one: Model,
    other: Model,
    *,
    kinds: Collection[str] | None = None,
    scopes: Collection[str] | None = None,
    orders: Collection[str] | None = None,
    threads: int | None = None,
    locations: int | None = None,
) -> Vocabulary:
    """The vocabulary of what both models cover. Unless told otherwise it has all ``kinds`` that both have and two
    ``scopes``: the CTA and the GPU, or the two narrowest that both have.

    Raises ``PtxmmError``: kind ``usage`` for an unknown word or a vocabulary without instructions, ``unsupported`` for
    what a model lacks.
    """
    for name, given, known in (("kind", kinds, KINDS), ("scope", scopes, SCOPES), ("order", orders, ORDERS)):
        unknown = next((word for word in given or () if word not in known), None)
        if unknown is not None:
            raise PtxmmError(f"unknown {name} `{unknown}`", kind="usage", hint=f"{name}s: {', '.join(known)}")
    for model in (one, other):
        _check_coverage(model, kinds or (), scopes or ())
    common = set(one.coverage.scopes) & set(other.coverage.scopes)
    both = sorted(common, key=SCOPES.index)
    aliases = one.coverage.aliases and other.coverage.aliases
    named = one.names() | other.names()
    words = vocabulary(
        [kind for kind in KINDS if kind != "alias" or aliases] if kinds is None else list(kinds),
        (sorted(common & {"cta", "gpu"}) or both[:2]) if scopes is None else list(scopes),
        None if orders is None else list(orders),
        narrow=not named & _SCOPE_TAGS,
        threads=threads,
        locations=locations,
    )
    if not words.forms:
        raise PtxmmError("no instruction has these kinds, orders and scopes", kind="usage")
    return words


def _check_coverage(model: Model, kinds: Collection[str], scopes: Collection[str]) -> None:
    for scope in scopes:
        if scope not in model.coverage.scopes:
            raise PtxmmError(f"{model.name} has no scope .{scope}", kind="unsupported")
    if "alias" in kinds and not model.coverage.aliases:
        raise PtxmmError(f"{model.name} has no virtual aliases of an address", kind="unsupported")


def separate(one: Model, other: Model, words: Vocabulary, most: int, *, limits: Limits | None = None) -> SeparateResult:
    """The smallest program of ``words`` with at most ``most`` instructions whose final states differ.

    All executions of all programs with threads of given sizes are one propositional problem: some execution that one
    model allows and the other does not. Without one there is no separating program; a program that has one is compared
    by its final states, each of them confirmed. Raises ``PtxmmError``: kind ``usage`` if ``most`` is out of range, and
    as ``check``.
    """
    start = time.perf_counter()
    return conclude(one, other, words, most, start, list(separations(one, other, words, most, limits=limits)))


def conclude(one: Model, other: Model, words: Vocabulary, most: int, start: float, steps: list[Step]) -> SeparateResult:
    """The result of a search from its ``steps``, which began at ``start`` (on ``time.perf_counter``)."""
    last = steps[-1] if steps else None
    program = last.program if last is not None else None
    names = model_names(one, other)
    ended = program is not None or (last is not None and last.number == last.total)
    notes = () if ended else (TIMEOUT,)
    return SeparateResult(
        file=program.file if program is not None else "<generated>",
        test=program.name if program is not None else "",
        model=names[0],
        other=names[1],
        status="complete" if ended else "timeout",
        vocabulary=words,
        most=most,
        separated=program is not None if ended else None,
        program=program,
        size=None if program is None else sum(len(thread.body) for thread in program.threads),
        searched=last.searched if last is not None else 0,
        compared=last.compared if last is not None else 0,
        notes=notes,
        seconds=time.perf_counter() - start,
    )


def count_steps(words: Vocabulary, most: int) -> int:
    """How many steps a search has that finds nothing. Raises ``PtxmmError`` (kind ``usage``) if ``most`` is out of
    range."""
    if not 1 <= most <= MOST:
        raise PtxmmError(f"programs of {most} instructions: at least 1, at most {MOST}", kind="usage")
    return sum(len(thread_sizes(size, words.threads)) for size in range(1, most + 1))


class Tried(Struct, frozen=True):
    """What the programs with threads of some sizes show: one whose final states differ, or None, and how many had to be
    compared one by one."""

    found: Skeleton | None
    compared: int


Divisions = Sequence[tuple[int, ...]]


def separations(
    one: Model,
    other: Model,
    words: Vocabulary,
    most: int,
    *,
    limits: Limits | None = None,
    run: Callable[[Divisions], Iterator[Tried]] | None = None,
    present: Callable[[Skeleton], Test] | None = None,
) -> Iterator[Step]:
    """The steps of ``separate``; those that the time limit leaves out are missing.

    ``run`` may try the programs with threads of these sizes elsewhere, several at once; it gives the results in their
    order, and may raise ``Timeout``. ``present`` may do elsewhere what the function of that name does.
    """
    limits = limits or Limits()
    presented_by = present or partial(presented, words=words, one=one, other=other, limits=limits)
    total, number, compared = count_steps(words, most), 0, 0
    for size in range(1, most + 1):
        divisions = thread_sizes(size, words.threads)
        # Two and three threads first: that is where small programs that separate models are.
        divisions.sort(key=lambda sizes: (len(sizes) == 1, len(sizes), sizes))
        tries = run(divisions) if run is not None else (try_(one, other, words, d, limits) for d in divisions)
        for sizes in divisions:
            number += 1
            try:
                tried = next(tries)
                compared += tried.compared
                program = None if tried.found is None else presented_by(tried.found)
            except Timeout:
                return
            searched = size if sizes == divisions[-1] and program is None else size - 1
            yield Step(sizes, number, total, searched, compared, program)
            if program is not None:
                return


def try_(one: Model, other: Model, words: Vocabulary, sizes: tuple[int, ...], limits: Limits) -> Tried:
    """Try all programs of ``words`` with threads of these sizes. Raises ``Timeout``."""
    compared = 0
    for allowing, forbidding in ((one, other), (other, one)):
        found, count = _search(words, sizes, allowing, forbidding, limits)
        compared += count
        if found is not None:
            return Tried(found, compared)
    return Tried(None, compared)


def presented(skeleton: Skeleton, words: Vocabulary, one: Model, other: Model, limits: Limits) -> Test:
    """The program with the weakest instructions that still separates the models, with a condition that does."""
    skeleton = canonical(skeleton)
    try:
        skeleton = _weakened(skeleton, words, one, other, limits)
    except Timeout:
        limits = replace(limits, deadline=None)
    test = realize(skeleton, words, canonical_name(skeleton))
    what = observed(test, True)
    states = [set(states_of(test, model, what, limits)) for model in (one, other)]
    for mine, others in (states, states[::-1]):
        if mine - others:
            return replace(test, condition=_condition(what, min(mine - others), others))
    raise AssertionError("a program that separates two models has no differing state")


def _weakened(skeleton: Skeleton, words: Vocabulary, one: Model, other: Model, limits: Limits) -> Skeleton:
    """Instruction by instruction the weakest form with which the program still separates the models."""
    for place in [(t, i) for t, body in enumerate(skeleton.threads) for i in range(len(body))]:
        for found in weaker(skeleton, place, words):
            if belongs(found, words) and _differ(found, words, one, other, limits):
                skeleton = found
                break
    return canonical(skeleton)


def _differ(skeleton: Skeleton, words: Vocabulary, one: Model, other: Model, limits: Limits) -> bool:
    test = realize(skeleton, words, "candidate")
    what = observed(test, True)
    mine, others = (states_of(test, model, what, limits) for model in (one, other))
    return mine.keys() != others.keys()


def _condition(what: Observed, state: tuple[int, ...], others: set[tuple[int, ...]]) -> Condition:
    """As few of the values of ``state`` as no state of ``others`` has together."""
    terms: list[RegisterTerm | MemoryTerm] = [*what.registers, *what.memory]
    kept = list(range(len(terms)))
    for number in reversed(range(len(terms))):
        rest = [k for k in kept if k != number]
        if not any(all(found[k] == state[k] for k in rest) for found in others):
            kept = rest
    return Condition("exists", exactly((terms[k], state[k]) for k in kept), "")


def _search(
    words: Vocabulary, sizes: tuple[int, ...], allowing: Model, forbidding: Model, limits: Limits
) -> tuple[Skeleton | None, int]:
    """A program whose final states differ, found by an execution that ``forbidding`` forbids, and how many programs
    were compared."""
    problem = Separation(words, sizes, allowing, forbidding, limits)
    compared = 0
    while (candidate := problem.next()) is not None:
        compared += 1
        test = realize(candidate.skeleton, words, "candidate")
        what = observed(test, True)
        mine, others = (states_of(test, model, what, limits) for model in (allowing, forbidding))
        if mine.keys() != others.keys():
            return candidate.skeleton, compared
        found = others.get(values(what, final_state(candidate, test)))
        problem.refute(None if found is None else orders_of(candidate.skeleton, found))
    return None, compared


def states_of(test: Test, model: Model, what: Observed, limits: Limits) -> dict[tuple[int, ...], Witness]:
    """The final states of ``test``, each with an execution."""
    states = final_states(Question(test, model, what, limits))
    if states.search.timeout:
        raise Timeout
    return states.witnesses(what)


def final_state(candidate: Candidate, test: Test) -> State:
    """The final state of ``candidate`` by the names that ``test`` has."""
    registers: dict[tuple[int, str], int] = {}
    counts: Counter[int] = Counter()
    for t, p in sorted(candidate.returned):
        registers[t, f"r{counts[t]}"] = candidate.returned[t, p]
        counts[t] += 1
    memory = {(key, 0): 0 for key in test.objects}
    for location, value in candidate.last.items():
        memory[location_name(location, 0), 0] = value
    return State(registers, memory)


def orders_of(skeleton: Skeleton, witness: Witness) -> Orders:
    """The orders of ``witness`` on instructions, numbered through the threads."""
    first = list(accumulate(map(len, skeleton.threads), initial=0))

    def numbered(pairs: Iterable[tuple[EventId, EventId]]) -> frozenset[tuple[int, int]]:
        return frozenset((first[a.thread] + a.instruction, first[b.thread] + b.instruction) for a, b in pairs)

    return numbered(witness.co), numbered(witness.fence_sc)
