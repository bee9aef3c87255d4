"""The final states of a test from one engine or both, each confirmed, over all values of memory that has none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_covered
from ptxmm.analysis.result import TIMEOUT, Note, Status
from ptxmm.analysis.uninitialised import settle_uninitialised
from ptxmm.cat import Model, index
from ptxmm.engines.explicit.witness import Confirmer, Rebuilt, Unconfirmed
from ptxmm.engines.result import Found, Limits, Observed, Search, Witness
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Proposition, RegisterTerm, State, Term, evaluate
from ptxmm.program.latest import Latest
from ptxmm.program.shared.polls import without_repeats
from ptxmm.program.test import Test
from ptxmm.program.unspecified.left_open import left_open
from ptxmm.program.unspecified.unknown import Assignment, assignments, computed_with, unknown_bytes

_Stages = Callable[..., Iterator[Search]]
_LAST_STATES = 1.0
"""Seconds after the deadline in which states that were found before it are confirmed."""


class Question(Struct, frozen=True):
    """The final states of ``test`` under ``model``, told apart by ``what``, from ``engines``, which must agree; with
    ``proposition`` only as many as decide it. ``each``: of several stages, each has states that those before have not,
    as soon as they are found. ``telling``: lines of ``test`` that give predicates which nothing decides, so that an
    execution of it need be none of the program (``unspecified.undecided``); ``loose``: and the program may have others.
    ``shown``: executions are shown, and not
    the states alone."""

    test: Test
    model: Model
    what: Observed
    limits: Limits
    engines: tuple[str, ...] = ("z3",)
    proposition: Proposition | None = None
    each: bool = False
    telling: tuple[int, ...] = ()
    loose: bool = False
    shown: bool = True


class FinalStates(Struct):
    """What the searches for a test found together.

    ``search`` has the facts of all; ``rows`` the final states, one for all that differ in an unknown initial value
    only; ``satisfied``: for each final state, those left out of ``rows`` too, whether it satisfies the proposition of
    the condition (None: there is no condition). ``depends``: that differs within a row. ``computed``: where the program
    computes with unknown values, so that not all values that matter may be known. ``left_open``: what the language
    leaves open that was not tried in full. ``unrolled``: some execution goes on beyond the bound of a loop. ``test``:
    the one whose executions ``search`` has; in it, unknown values that do not matter are 0 (``uninitialised``).
    ``late``: the engines that the deadline ended, where several search. ``agreed``: as ``satisfied``, of the final
    states that all of them found.
    """

    search: Search
    test: Test
    rows: list[State] = field(default_factory=list)
    satisfied: list[bool | None] = field(default_factory=list)
    depends: bool = False
    computed: list[str] = field(default_factory=list)
    unrolled: bool = False
    left_open: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    agreed: list[bool | None] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        """Whether these are all final states."""
        return self.search.exhausted and not (self.search.timeout or self.search.bounded)

    def witnesses(self, what: Observed) -> dict[tuple[int, ...], Witness]:
        """An execution for each final state, by its values of ``what``."""
        return {values(what, found.state): found.witness for found in self.search.found}

    @property
    def meaningless(self) -> bool:
        """Whether the program has no meaning."""
        return self.search.undefined is not None or bool(self.search.flags & index().undefined)

    @property
    def status(self) -> Status:
        """How far the search got."""
        if self.meaningless:
            return "undefined"
        return "timeout" if self.search.timeout else "complete" if self.exhausted else "bounded"

    def remarks(self, name: str, bound: str) -> Iterator[Note]:
        """What is to be said of the search on the side ``name``; ``bound``: if it was cut by that of a loop."""
        search = self.search
        if search.undefined is not None:
            yield Note("undefined", f"{name}: {search.undefined}")
        for flag in sorted(search.flags & index().undefined):
            yield Note("undefined", f"{name}: some execution raises the flag {flag}")
        if self.unrolled:
            yield Note("bound", f"{name}: {bound}")
        if search.timeout:
            yield Note("timeout", f"{name}: {TIMEOUT.text}")
        if search.deadlock:
            yield Note("deadlock", f"{name}: some execution waits for ever at a barrier")


def final_states(question: Question) -> FinalStates:
    """The answer to ``question``.

    Raises ``PtxmmError``: kind ``internal`` where a witness is not confirmed or the engines disagree, ``unsupported``
    where an execution does what the model does not cover, and what the engines raise.
    """
    return next(stages(question))


def stages(question: Question) -> Iterator[FinalStates]:
    """As ``final_states``; with a proposition all final states after those that decide it.

    What several engines find, or one with several choices of the unknown values, is put together, so that it comes all
    at once.
    """
    test, what = question.test, question.what
    try:
        test = without_repeats(test, what.registers)
        test = settle_uninitialised(test, question.model, question.limits, what)
    except Timeout:
        yield FinalStates(Search(timeout=True), test)
        return
    begun: list[tuple[Assignment, list[Iterator[Search]]]] = []
    shown: tuple[Term, ...] = (*what.registers, *what.memory)
    each = question.each and len(question.engines) == len([*islice(assignments(test, shown), 2)]) == 1
    question = replace(question, test=test, each=each)

    def searched(wanted: Proposition | None) -> Iterator[tuple[Assignment, list[Search]]]:
        """What the engines find next with each choice of the unknown values."""
        for assigned, engines in begun:
            yield assigned, [next(engine) for engine in engines]
        for assigned in islice(assignments(test, shown), len(begun), None):
            asked = replace(question, test=assigned.test, proposition=wanted)
            engines = [_confirmed(name, asked) for name in question.engines]
            begun.append((assigned, engines))
            yield assigned, [next(engine) for engine in engines]

    untried = _untried(test, frozenset(shown))
    for wanted in dict.fromkeys((question.proposition, None)):
        asked = replace(question, proposition=wanted)
        result = _together(asked, untried, searched(wanted))
        yield result
        if result.search.timeout:
            return
    for assigned, engines in begun if question.each else ():
        yield from (_together(asked, untried, [(assigned, [search])]) for search in engines[0])


def _together(
    question: Question, untried: tuple[list[str], list[str]], searched: Iterable[tuple[Assignment, list[Search]]]
) -> FinalStates:
    """What the searches ``searched`` found together; ``untried``: of ``_untried``."""
    test, what = question.test, question.what
    computed, matters = untried
    result = FinalStates(Search(exhausted=True), test, computed=computed, left_open=matters)
    condition = None if test.condition is None else test.condition.proposition
    general: list[tuple[State, bool | None]] = []
    listed: set[tuple[int, ...]] = set()
    for assigned, searches in searched:
        _add(result.search, searches[0])
        if len(searches) > 1:
            _compare(test, what, *searches)
            _add_late(result, question.engines, searches)
        others = [_states(what, search) for search in searches[1:]]
        instances = {_instance(test, what, state, assigned): holds for state, holds in general}
        keyed = [(values(what, found.state), found.state) for found in searches[0].found]
        for key, state in sorted(keyed, key=itemgetter(0)):
            holds = None if condition is None else evaluate(condition, state)
            if not assigned.bytes:
                general.append((state, holds))
            if assigned.bytes and key in instances:
                result.depends = result.depends or holds != instances[key]
            elif key not in listed:  # several initial values may lead to the same state
                result.rows.append(state)
                listed.add(key)
            result.satisfied.append(holds)
            if all(key in states for states in others):
                result.agreed.append(holds)
        decided = question.proposition is not None and {True, False} <= set(result.satisfied)
        if decided or len(result.rows) == question.limits.states:
            break
    check_covered(test, question.model, result.search)
    result.unrolled = result.search.bounded
    partial = bool(result.computed or result.left_open)
    result.search.exhausted &= not partial
    result.search.bounded |= partial
    return result


_latest: Latest[tuple[list[str], list[str]]] = Latest(4)


def _untried(test: Test, asked: frozenset[Term]) -> tuple[list[str], list[str]]:
    """What ``computed_with`` and ``left_open`` say of ``test``."""
    threads = {term.thread for term in asked if isinstance(term, RegisterTerm)}
    known = _latest.get(test, asked)
    return known or _latest.keep(test, asked, (computed_with(test, asked), left_open(test, threads)))


def _states(what: Observed, search: Search) -> set[tuple[int, ...]]:
    return {values(what, found.state) for found in search.found}


def _add(total: Search, search: Search) -> None:
    """Add the facts of one search to those of all."""
    total.exhausted = total.exhausted and search.exhausted
    total.bounded = total.bounded or search.bounded
    total.loops |= search.loops
    total.deadlock = total.deadlock or search.deadlock
    total.timeout = total.timeout or search.timeout
    total.undefined = total.undefined or search.undefined
    total.flags |= search.flags
    total.found += search.found


def _add_late(result: FinalStates, names: tuple[str, ...], searches: list[Search]) -> None:
    """Where one of several engines did not get to its end, they have not been compared to theirs."""
    result.late += [n for n, s in zip(names, searches, strict=True) if s.timeout and n not in result.late]
    result.search.timeout = bool(result.late)
    result.search.exhausted = result.search.exhausted and not result.late


def _instance(test: Test, what: Observed, state: State, assigned: Assignment) -> tuple[int, ...]:
    """The values of ``state`` with those of ``assigned`` in place of the unknown ones."""
    unknown = unknown_bytes(test)

    def put(value: int, bits: int) -> int:
        content = value.to_bytes(max(1, bits // 8), "little")
        return int.from_bytes(bytes(assigned.bytes.get(b, b) if b in unknown else b for b in content), "little")

    registers = tuple(put(state.registers[t.thread, t.register], t.type.bits) for t in what.registers)
    return registers + tuple(put(state.memory[t.key, t.index], t.type.bits) for t in what.memory)


def engine_named(name: str, *, shown: bool = True) -> _Stages:
    """The search of an engine, which is loaded only where it is used. ``shown``: as of ``Question``."""
    if name == "z3":
        from ptxmm.engines.symbolic.solve import stages as solver_stages

        return partial(solver_stages, shown=shown)
    from ptxmm.engines.explicit.enumerate import stages as explicit_stages

    return explicit_stages


def _confirmed(engine: str, question: Question) -> Iterator[Search]:
    """The stages of the search of an engine, every final state of which ends an execution that the interpreter went
    through again.

    States that there is no time to confirm are dropped. A search that the deadline ended has its last states
    confirmed all the same, for a second.
    """
    test, model, what, limits = question.test, question.model, question.what, question.limits
    confirmer = Confirmer(test, model)
    confirmed: dict[int, Found] = {}
    search_with = engine_named(engine, shown=question.shown)
    searches = search_with(test, model, what, limits, question.proposition, each=question.each)
    while True:
        try:
            search = next(searches)
        except StopIteration:
            return
        except Timeout:
            search = Search(timeout=True)
        for number, found in enumerate(search.found):
            if id(found) in confirmed:
                continue
            if limits.deadline is not None and time.monotonic() > limits.deadline + _LAST_STATES:
                del search.found[number:]
                search.timeout, search.exhausted = True, False
                break
            try:
                state = confirmer.confirm(what, found.witness)
            except Unconfirmed as error:
                raise bug(test, f"a witness under {model.name} is not confirmed: {error}") from error
            if state != found.state and values(what, state) != values(what, found.state):
                raise bug(test, f"a witness under {model.name} ends in another final state than the engine found")
            if not question.each:
                confirmed[id(found)] = found
        yield search


def rebuild(test: Test, model: Model, witness: Witness) -> tuple[Test, Rebuilt]:
    """``witness``, which was confirmed for one choice of the unknown initial values, and the test with that choice.

    Raises ``PtxmmError`` (kind ``internal``) if it is an execution for none.
    """
    reason = ""
    for assigned in chain(assignments(test), assignments(test, every=True)):
        try:
            return assigned.test, Confirmer(assigned.test, model).rebuild(witness)
        except Unconfirmed as error:
            reason = reason or str(error)
    raise bug(test, f"a witness under {model.name} is not confirmed: {reason}")


def _compare(test: Test, what: Observed, one: Search, two: Search) -> None:
    """Raise unless both engines found the same, as far as each of them got."""
    states = [_states(what, search) for search in (one, two)]
    facts = [_facts(search) for search in (one, two)]
    # What a search that was cut did not find, it may have missed.
    differ = (one.exhausted and (states[1] - states[0] or facts[1] - facts[0])) or (
        two.exhausted and (states[0] - states[1] or facts[0] - facts[1])
    )
    if differ:
        only = " and ".join(
            " ".join((f"{len(states[mine] - states[1 - mine])} final states", *sorted(facts[mine] - facts[1 - mine])))
            + f" only in {name}"
            for mine, name in enumerate(("z3", "enumerate"))
        )
        raise bug(test, f"the engines disagree: {only}")


def _facts(search: Search) -> set[str]:
    named = {"bounded": search.bounded, "deadlock": search.deadlock, "undefined": search.undefined is not None}
    return search.flags | {name for name, holds in named.items() if holds}


def worst(*statuses: Status) -> Status:
    """The status of several searches together."""
    order: tuple[Status, ...] = ("undefined", "timeout", "bounded", "complete")
    return min(statuses, key=order.index)


def bug(test: Test, message: str) -> PtxmmError:
    """An error of kind ``internal``."""
    return PtxmmError(
        message, kind="internal", file=test.file, hint="this is a bug in ptxmm; please report it with the test"
    )


def values(what: Observed, state: State) -> tuple[int, ...]:
    """The values of ``state``, in the order of ``what``."""
    registers = [state.registers[t.thread, t.register] for t in what.registers]
    return (*registers, *[state.memory[t.key, t.index] for t in what.memory])
