"""Why no allowed execution ends in some states: for each execution that would, a shortest reason, checked again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from ptxmm.analysis.search import bug
from ptxmm.cat.derivation import BaseFact, Derivations, Violation, base_facts
from ptxmm.cat.derivation_bounds import Recheck, reduce
from ptxmm.cat.ir import Axiom, Model, Node
from ptxmm.cat.polarity import acyclic_orders, lower_bounds
from ptxmm.engines.explicit.witness import Confirmer, Rebuilt, Unconfirmed
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.engines.symbolic.executions import Executions, Fact
from ptxmm.errors import PtxmmError
from ptxmm.program.condition import Proposition
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import ProxyFence

EventName = tuple[EventId, str] | tuple[str, int, int]
"""An event of a thread by its id and kind, or an initial write by its bytes."""

NamedFact = tuple[str | Node, EventName, EventName | None, bool]
"""A fact by the names of its events, which are the same in all executions."""


class Found(Struct, frozen=True, eq=False):
    """A violation in one of the executions that end in the states asked about, and all that it rests on."""

    witness: Witness
    execution: Rebuilt
    violation: Violation
    facts: tuple[BaseFact, ...]
    named: frozenset[NamedFact]

    @property
    def rank(self) -> tuple[int, str, list[str]]:
        """Where it stands among others, whichever of them is found first."""
        return self.violation.cost, self.violation.axiom.name, sorted(map(repr, self.named))


def check_axioms(model: Model) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) if ``model`` has a check that says what an execution must have."""
    for axiom in model.axioms:
        if axiom.negated and not axiom.flag:
            raise PtxmmError(
                f"axiom {axiom.name} of {model.name} is a negated check: its violation is no cycle, path or pair",
                kind="unsupported",
            )


def background(model: Model) -> tuple[Axiom, ...]:
    """The axioms that only say what an order is, which a proof takes for granted: that it is acyclic, and that it
    relates every two events of some kind one way or the other."""
    found = [axiom for axiom, _, symmetric in _bounds(model) if symmetric]
    return (*found, *acyclic_orders(model))


def _bounds(model: Model) -> Iterator[tuple[Axiom, object, bool]]:
    for witness in ("co", "fsc"):
        yield from lower_bounds(model, witness)


class Search:
    """Looks for executions of ``test`` that end in a state with ``proposition``, whatever the axioms but ``orders``
    (None: those of ``background``) say, and that have none of the facts excluded (from the start those ``known``).

    ``assumed``: names of those of ``orders`` that some execution did not keep.
    """

    __slots__ = ("_confirmer", "_excluded", "_executions", "assumed", "model", "orders", "test")

    def __init__(
        self,
        test: Test,
        model: Model,
        proposition: Proposition,
        limits: Limits,
        orders: Collection[Axiom] | None = None,
        known: Iterable[frozenset[NamedFact]] = (),
    ) -> None:
        self.test = test
        self.model = model
        self.orders = background(model) if orders is None else tuple(orders)
        self._executions = Executions(test, model, proposition, limits, Observed((), ()))
        self._confirmer = Confirmer(test, model)
        self._excluded: set[frozenset[NamedFact]] = set()
        self.assumed: set[str] = set()
        for facts in known:
            self.exclude(facts)

    @property
    def excluded(self) -> Collection[frozenset[NamedFact]]:
        """All facts excluded so far: when there is no further execution, each has one of these sets of facts."""
        return self._excluded

    def next(
        self, having: Iterable[NamedFact] = (), lacking: Iterable[frozenset[NamedFact]] = ()
    ) -> tuple[Witness, Rebuilt] | None:
        """One more execution, or None: one with all the facts ``having``, and without one at least of each of
        ``lacking``. Raises ``Timeout``."""
        with_, without = list(self._facts(having)), [list(self._facts(facts)) for facts in lacking]
        while True:
            witness = self._executions.next(with_, without)
            if witness is None:
                return None
            try:
                execution = self._confirmer.rebuild(witness)
            except Unconfirmed as error:
                raise bug(self.test, f"an execution under {self.model.name} is none of the program: {error}") from error
            if not self._disordered(execution):
                return witness, execution

    def _disordered(self, execution: Rebuilt) -> bool:
        """Whether an axiom of ``background`` does not hold; then nothing that violates it so is found again."""
        algebra = execution.layout.algebra
        derivations = Derivations(algebra, execution.evaluator.value)
        found = False
        for axiom in self.orders:
            violations = []
            if axiom.kind == "acyclic":
                violations.append(derivations.violation(axiom))
            else:
                for x, y in algebra.pairs(execution.evaluator.value(axiom.body)):
                    proof = derivations.pair(axiom.body, x, y)
                    violations.append(None if proof is None else Violation(axiom, (proof,), proof.cost))
            for violation in violations:
                if violation is not None:
                    found = True
                    self.assumed.add(axiom.name)
                    self.exclude(named_facts(execution, base_facts(violation)))
        return found

    def exclude(self, facts: frozenset[NamedFact]) -> None:
        """From now on, find no execution that has all of ``facts``."""
        if facts in self._excluded:
            raise bug(self.test, "an execution was found that has been excluded")
        self._excluded.add(facts)
        self._executions.exclude(self._facts(facts))

    def _facts(self, facts: Iterable[NamedFact]) -> Iterator[Fact]:
        """``facts`` as the symbolic side names their events."""
        for relation, first, second, holds in facts:
            other = None if second is None else _symbolic(self.test, second)
            yield Fact(relation, _symbolic(self.test, first), other, holds)


def reasons(search: Search, limits: Limits) -> Iterator[Found]:
    """A reason for each execution of ``search``; none of the later ones has a reason given before.

    Every reason is checked again from its facts alone, and has none that it does not need. Raises ``Timeout``, and
    ``PtxmmError`` of kind ``internal`` where an execution violates no axiom.
    """
    test, model = search.test, search.model
    axioms = [a for a in model.axioms if not a.flag and a not in search.orders]
    while (found := search.next()) is not None:
        limits.check()
        witness, execution = found
        derivations = Derivations(execution.layout.algebra, execution.evaluator.value, limits.check)
        violations = [v for v in map(derivations.violation, axioms) if v is not None]
        if not violations:
            raise bug(test, f"an execution that {model.name} should forbid violates none of its axioms")
        violation, facts = _minimal(model, execution, min(violations, key=lambda v: v.cost), test, limits)
        named = named_facts(execution, facts)
        search.exclude(named)
        yield Found(witness, execution, violation, facts, named)


def fewest(search: Search, limits: Limits, found: Sequence[Found]) -> tuple[Found, ...]:
    """As many of ``found`` as it takes to have a reason for every execution of the new ``search``, chosen greedily: a
    reason may be more general than those that came before it. Raises ``Timeout``."""
    covers = {reason: sum(applies(reason.named, other.execution) for other in found) for reason in found}
    if all(count == 1 for count in covers.values()):
        return tuple(found)
    chosen: list[Found] = []
    while (following := search.next()) is not None:
        limits.check()
        able = [reason for reason in found if applies(reason.named, following[1])]
        if not able:
            raise bug(search.test, f"an execution that {search.model.name} should forbid has none of the reasons found")
        best = max(able, key=lambda reason: (covers[reason], -reason.violation.cost))
        chosen.append(best)
        search.exclude(best.named)
    return tuple(reason for reason in found if reason in chosen)


def applies(facts: frozenset[NamedFact], execution: Rebuilt) -> bool:
    """Whether ``execution`` has all of ``facts``."""
    layout = execution.layout
    for relation, first, second, holds in facts:
        x = numbered(execution, first)
        y = None if second is None else numbered(execution, second)
        if x is None or (second is not None and y is None):
            return False
        value = execution.base(relation) if isinstance(relation, str) else execution.evaluator.value(relation)
        assert value is not None
        if bool(value >> (x if y is None else x * layout.algebra.n + y) & 1) is not holds:
            return False
    return True


def _minimal(
    model: Model, execution: Rebuilt, violation: Violation, test: Test, limits: Limits
) -> tuple[Violation, tuple[BaseFact, ...]]:
    """``violation`` with no edge or absence too many, and its facts, which have been checked to prove it."""
    layout = execution.layout
    recheck = Recheck(model, layout.algebra, execution.base)
    axiom = violation.axiom
    while True:
        limits.check()
        facts = base_facts(violation)
        if not recheck.violated(axiom, facts):
            raise bug(test, f"the facts of a reason do not prove that {axiom.name} of {model.name} is violated")
        kept = reduce(recheck, axiom, facts)
        if len(kept) == len(facts):
            break
        again = Derivations(layout.algebra, _lower(recheck, kept), limits.check).violation(axiom)
        if again is None:
            raise bug(test, f"the reduced facts of a reason no longer derive that {axiom.name} is violated")
        violation = again
    return violation, facts


def _lower(recheck: Recheck, facts: Collection[BaseFact]) -> Callable[[Node], int]:
    """What ``facts`` alone say of each node."""
    known = recheck.known(facts)
    return lambda node: known(node)[0]


def named_facts(execution: Rebuilt, facts: Iterable[BaseFact]) -> frozenset[NamedFact]:
    """``facts`` by the names of their events."""
    layout = execution.layout

    def name(number: int) -> EventName:
        event = layout.events[number]
        return event.cell if number >= layout.initial_first and event.cell is not None else (event.id, event.kind)

    return frozenset((f.relation, name(f.first), None if f.second is None else name(f.second), f.holds) for f in facts)


def numbered(execution: Rebuilt, name: EventName) -> int | None:
    """The number of an event in an execution; None if it is not in it."""
    if len(name) == 2:
        return execution.layout.numbers.get(name)
    return execution.layout.cells.get(name)


def _symbolic(test: Test, name: EventName) -> EventName:
    """The name that the symbolic side has for an event: it calls fences of proxies by their own kinds."""
    if len(name) == 2 and name[1] == "F":
        op = test.at(name[0].site)
        if isinstance(op, ProxyFence):
            return name[0], "AF" if op.kind == "alias" else "PF"
    return name
