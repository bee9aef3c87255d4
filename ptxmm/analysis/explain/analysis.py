"""Why a test may end in some states, or why it may not: an execution, or the reasons and the nearest misses."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible, check_covered
from ptxmm.analysis.execution import execution
from ptxmm.analysis.explain.cases import Case, Split, cases, split, used
from ptxmm.analysis.explain.chains import reason
from ptxmm.analysis.explain.clauses import Definition, definition, unique
from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.expected import Expected, expected
from ptxmm.analysis.explain.graph import drawn
from ptxmm.analysis.explain.miss import Miss, Question, closest, nearest, repairs
from ptxmm.analysis.explain.reasons import Found, NamedFact, background, check_axioms, fewest, reasons
from ptxmm.analysis.explain.reasons import Search as Executions
from ptxmm.analysis.explain.steps import Reason
from ptxmm.analysis.explain.synchronization import Synchronization, synchronization
from ptxmm.analysis.explain.values import Impossible, impossible, wording
from ptxmm.analysis.explain.words import axiom_words
from ptxmm.analysis.result import TIMEOUT, Execution, Note, Status, told
from ptxmm.analysis.search import bug
from ptxmm.analysis.undefined import misuse
from ptxmm.cat import Model, index
from ptxmm.cat.ir import Axiom
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Limits, Search, observing
from ptxmm.engines.symbolic.solve import search
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Negation, Proposition, evaluate, terms
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.program.unspecified.left_open import left_open
from ptxmm.program.unspecified.unknown import Assignment, assignments

Verdict = Literal["allowed", "forbidden", "impossible", "unknown"]


class Group(Struct, frozen=True):
    """Reasons that differ only in the instructions that they are about."""

    reasons: tuple[Reason, ...]


class Assumption(Struct, frozen=True):
    """An axiom that only says what an order is, with its section of PTX ISA 8.5: it holds in all executions that are
    given reasons for."""

    axiom: str
    text: str
    section: str | None


class ExplainResult(Struct, frozen=True, tag_field="analysis", tag="explain"):
    """Why ``test`` may or may not end in a state with ``state``.

    ``verdict``: ``allowed``, by ``execution`` with its ``synchronization``, and ``expected`` says what would forbid it,
    were it an order (None in models without causality order); ``forbidden``: every execution that ends so has one of
    the reasons in ``groups`` (unless the time limit cut the list), each checked from its facts alone, and ``cases``
    tell which has which, where orders or what is read tell them apart; ``impossible``: no execution ends so whatever
    the axioms say, for the parts of the state in ``impossible``; ``unknown``: the search was not complete, or the
    program has no meaning in ``execution``. ``definitions``: what the axioms and steps of the reasons mean.
    ``assumed``: axioms that the reasons take for granted. ``misses``: the nearest misses of what is forbidden, and
    ``repairs``: changes that forbid what is allowed, looked for only if ``searched``.
    """

    file: str
    test: str
    model: str
    status: Status
    notes: tuple[Note, ...]
    seconds: float
    state: str
    verdict: Verdict
    execution: Execution | None = None
    synchronization: tuple[Synchronization, ...] = ()
    expected: Expected | None = None
    repairs: tuple[Miss, ...] = ()
    groups: tuple[Group, ...] = ()
    cases: tuple[Case, ...] = ()
    definitions: tuple[Definition, ...] = ()
    assumed: tuple[Assumption, ...] = ()
    searched: bool = False
    misses: tuple[Miss, ...] = ()
    impossible: tuple[Impossible, ...] = ()

    @property
    def finding(self) -> bool | None:
        """An explanation is nothing to warn of; None where there is none, or none of all executions."""
        return None if self.verdict == "unknown" or self.status != "complete" else False


class _Answer(Struct):
    """What is known so far of the states that are asked for; it stays true if the time limit ends the search."""

    test: Test
    model: Model
    question: Question
    limits: Limits
    graphs: bool
    status: Status = "complete"
    verdict: Verdict = "unknown"
    notes: list[Note] = field(default_factory=list)
    execution: Execution | None = None
    synchronization: tuple[Synchronization, ...] = ()
    expected: Expected | None = None
    repairs: tuple[Miss, ...] = ()
    reasons: list[Reason] = field(default_factory=list)
    splits: tuple[Split, ...] = ()
    split: tuple[Found, ...] = ()
    assumed: set[str] = field(default_factory=set)
    searched: bool = False
    misses: tuple[Miss, ...] = ()
    impossible: tuple[Impossible, ...] = ()

    def search(self, misses: bool, repaired: bool) -> None:
        """Find what there is to say, with the nearest misses or the repairs. Raises ``Timeout``."""
        asked = {term.thread for term in self.question.observed.registers}
        observed = self.question.observed
        programs = list(assignments(self.test, (*observed.registers, *observed.memory)))
        for assigned in programs:
            found = search(assigned.test, self.model, self.question.observed, self.limits, self.question.proposition)
            if self._settled(assigned, found):
                if repaired and self.verdict == "allowed":
                    self.repairs, self.searched = repairs(self.test, self.model, self.question, self.limits)
                return
        if self.status == "bounded":
            text = f"executions that take a branch back more than {self.limits.unroll} times are left out"
            self.notes.append(Note("bound", f"{text}; --unroll takes more"))
        for text in left_open(self.test, asked):
            self.status = "bounded"
            self.notes.append(Note("open", text))
        self.verdict = "forbidden"
        orders = background(self.model)
        sites = self._reasons(programs, orders)
        if not self.reasons and self.assumed:
            sites = self._orders_alone(programs, orders)
        if not self.reasons:
            self.verdict = "impossible"
            self.impossible = impossible(
                self.test, programs[0].test, self.model, self.question.proposition, self.limits
            )
        elif misses:
            self.misses = closest(
                nearest(program.test, self.model, self.question, found, self.limits)
                for program, found in zip(programs, sites, strict=True)
                if found
            )
            self.searched = True

    def _settled(self, assigned: Assignment, found: Search) -> bool:
        """Whether the search says that the states are allowed, that the program has no meaning, or gives up."""
        test, model = self.test, self.model
        if found.undefined is not None or found.flags & index().undefined:
            flags = ", ".join(sorted(found.flags & index().undefined))
            self.status = "undefined"
            self.notes.append(Note("undefined", f"the program has no meaning: {found.undefined or flags}"))
            notes, self.execution = misuse(assigned.test, model, self.limits, {found.undefined})
            self.notes += notes
            return True
        check_covered(test, model, found)
        if found.bounded:
            self.status = "bounded"
        wanted = self.question.proposition
        for item in (item for item in found.found if evaluate(wanted, item.state)):
            confirmer = Confirmer(assigned.test, model)
            try:
                state = confirmer.confirm(self.question.observed, item.witness)
                rebuilt = confirmer.rebuild(item.witness)
            except Unconfirmed as error:
                raise bug(test, f"a witness under {model.name} is not confirmed: {error}") from error
            if not evaluate(wanted, state):
                raise bug(test, f"a witness under {model.name} ends in another final state than the engine found")
            self.verdict = "allowed"
            self.status = "complete"  # one execution is enough
            # Values are shown as those of ``test``: a constant that was put for an unknown value is one.
            self.execution = (drawn if self.graphs else execution)(test, rebuilt)
            views = Views(test, rebuilt)
            self.synchronization, self.expected = synchronization(views), expected(views)
            return True
        if found.timeout:
            raise Timeout
        return False

    def _reasons(self, programs: Sequence[Assignment], orders: Collection[Axiom]) -> list[set[Site]]:
        """Add the reasons for all executions of ``programs`` (``test`` with values of unknown memory) that keep
        ``orders``; those found if time runs out, too.

        Returns for each program the instructions that matter: an execution that ends so either has a reason or does
        not keep one of ``orders``, and no change of instructions that neither is about makes it an allowed one.
        """
        sites = []
        known: list[frozenset[NamedFact]] = []
        for assigned in programs:
            found: list[Found] = []
            chosen: tuple[Found, ...] = ()
            asked = assigned.test, self.model, self.question.proposition, self.limits, orders, known
            try:
                executions = Executions(*asked)
                for item in reasons(executions, self.limits):
                    found.append(item)
                self.assumed |= executions.assumed
                if found:
                    chosen = tuple(sorted(fewest(Executions(*asked), self.limits, found), key=lambda item: item.rank))
                if len(programs) == 1:
                    self.splits = split(Executions(*asked), self.limits, chosen)
                    chosen = tuple(item for item in chosen if not self.splits or used(self.splits, item))
            finally:
                # Values are shown as those of ``test``: a constant that was put for an unknown value is one.
                self.split = chosen
                self.reasons += map(self._reason, chosen or found)
            known += [item.named for item in chosen]
            sites.append(_sites(assigned.test, executions.excluded))
        return sites

    def groups(self) -> tuple[Group, ...]:
        """The reasons by their kinds, the shortest first."""
        kinds: dict[tuple[object, ...], list[Reason]] = {}
        for item in _distinct(self.reasons):
            kinds.setdefault(item.shape, []).append(item)
        return tuple(Group(tuple(g)) for g in sorted(kinds.values(), key=lambda g: min(r.length for r in g)))

    def cases(self, groups: Iterable[Group]) -> tuple[Case, ...]:
        """Which executions have which of the reasons in ``groups``."""
        numbers = {_bare(item): n for n, item in enumerate((r for g in groups for r in g.reasons), 1)}
        made = {id(found): numbers[_bare(item)] for found, item in zip(self.split, self.reasons, strict=False)}
        views = [Views(self.test, found.execution) for found in self.split]
        return cases(self.splits, views, lambda found: made[id(found)])

    def _reason(self, found: Found) -> Reason:
        made = reason(self.model, Views(self.test, found.execution), found)
        if not self.graphs:
            return made
        return replace(made, execution=drawn(self.test, found.execution))

    def _orders_alone(self, programs: Sequence[Assignment], orders: Sequence[Axiom]) -> list[set[Site]]:
        """Where no execution that ends so keeps ``orders``: reasons why those that keep all but one of them violate
        that one; all of them, where no single one is enough."""
        needed = [axiom for axiom in orders if axiom.name in self.assumed]
        sites: list[set[Site]] = []
        for released in (*([axiom] for axiom in needed), needed):
            self.assumed.clear()
            sites = self._reasons(programs, [axiom for axiom in orders if axiom not in released])
            if self.reasons:
                break
        return sites


def explain(
    test: Test,
    model: Model,
    *,
    limits: Limits | None = None,
    state: Proposition | None = None,
    misses: bool = True,
    repaired: bool | None = None,
    graphs: bool = False,
) -> ExplainResult:
    """Explain why ``test`` may end in a state with ``state`` under ``model``, or why it may not.

    ``state`` None takes the condition of the test; of ``forall`` its negation, that is, why it may fail.
    ``misses``: look for the nearest misses of what is forbidden; ``repaired``: for changes that forbid what is
    allowed (None: as ``misses``). ``graphs``: give the execution that is shown, or one
    for each reason, as a graph.

    Raises ``PtxmmError``: kind ``usage`` where there is neither a state nor a condition, ``unsupported`` where the
    model does not cover the test or has negated checks, ``internal`` where an execution is not confirmed or a reason
    does not hold, and what the engine raises.
    """
    start = time.perf_counter()
    limits = limits or Limits()
    if state is None:
        if test.condition is None:
            hint = 'name the final state to explain: --state "P1:r0=1"'
            raise PtxmmError("the test has no condition", kind="usage", file=test.file, hint=hint)
        state = test.condition.proposition
        if test.condition.kind == "forall":
            state = Negation(state)
    check_compatible(test, model)
    check_axioms(model)
    answer = _Answer(test, model, Question(state, observing(terms(state))), limits, graphs)
    try:
        answer.search(misses, misses if repaired is None else repaired)
    except Timeout:
        answer.status = "timeout"
        answer.notes.append(TIMEOUT)
    groups = answer.groups()
    return ExplainResult(
        test.file,
        test.name,
        model.name,
        told(answer.status, answer.verdict != "unknown"),
        tuple(answer.notes),
        time.perf_counter() - start,
        wording(test, state),
        answer.verdict,
        answer.execution,
        answer.synchronization,
        answer.expected,
        answer.repairs,
        groups,
        answer.cases(groups),
        tuple(unique(_definitions(model, answer.reasons))),
        tuple(_assumption(model, axiom) for axiom in model.axioms if axiom.name in answer.assumed),
        answer.searched,
        answer.misses,
        answer.impossible,
    )


def _distinct(found: Iterable[Reason]) -> Iterable[Reason]:
    """The first of reasons that say the same, of whatever executions."""
    known: dict[Reason, Reason] = {}
    for item in found:
        known.setdefault(_bare(item), item)
    return known.values()


def _bare(item: Reason) -> Reason:
    return replace(item, execution=None)


def _definitions(model: Model, found: Iterable[Reason]) -> Iterator[Definition]:
    for item in found:
        yield definition(model, item.axiom, item.section)
        for step in item.steps:
            yield definition(model, step.relation, step.section)


def _assumption(model: Model, axiom: Axiom) -> Assumption:
    words = axiom_words(model, axiom)
    return Assumption(axiom.name, words.text, words.section)


def _sites(test: Test, excluded: Iterable[frozenset[NamedFact]]) -> set[Site]:
    """The instructions that facts are about."""
    sites: set[Site] = set()
    for facts in excluded:
        for _, first, second, _ in facts:
            for name in (first, second):
                if name is not None and len(name) == 2:
                    thread, pc = name[0].site
                    if 0 <= pc < len(test.threads[thread].body):
                        sites.add(name[0].site)
    return sites
