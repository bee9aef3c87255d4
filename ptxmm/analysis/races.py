"""The data races of a test (PTX ISA 8.7.1), and those of mixed sizes (8.7.2): every racy pair of instructions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.execution import execution, location
from ptxmm.analysis.explain.graph import drawn
from ptxmm.analysis.instruction import bound_reached, instruction
from ptxmm.analysis.morally_strong import Condition, conditions
from ptxmm.analysis.result import ALL_THREADS, TIMEOUT, Execution, Instruction, Note, Status, told
from ptxmm.analysis.search import bug, engine_named
from ptxmm.analysis.uninitialised import settle_uninitialised
from ptxmm.analysis.verdict import status_of
from ptxmm.cat import Model, index, load
from ptxmm.cat.ir import Axiom
from ptxmm.engines.explicit.witness import Confirmer, Rebuilt, Unconfirmed
from ptxmm.engines.result import Limits, Observed, Search, Witness
from ptxmm.engines.symbolic.problem import next_grid
from ptxmm.engines.symbolic.related import RelatedSites, SitePair
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.shared.launches import held
from ptxmm.program.shared.polls import without_repeats
from ptxmm.program.test import Test
from ptxmm.program.unspecified.left_open import left_open
from ptxmm.program.unspecified.undecided import either_way, note
from ptxmm.program.unspecified.unknown import assignments, computed_with
from ptxmm.ptx.ops import Store, StoreMatrix, touched

DATA_RACE, MIXED_SIZE = "data-race", "mixed-size-race"
"""The flags of a model that an execution with a race raises."""

MOST = 100
"""So many racy pairs are reported unless told otherwise."""

Shown = Callable[[Test, Rebuilt], Execution]


class Race(Struct, frozen=True):
    """Two instructions that race, and one execution in which they do.

    ``mixed``: in some execution (the one shown) they access different bytes. ``locations``: what each of them accesses
    there; ``fails``: why the accesses are not morally strong.
    """

    first: Instruction
    second: Instruction
    mixed: bool
    locations: tuple[str, str]
    kinds: tuple[str, str]
    fails: tuple[Condition, ...]
    execution: Execution


class RacesResult(Struct, frozen=True, tag_field="analysis", tag="races"):
    """The races of one test under one model.

    ``races``: all racy pairs of instructions iff ``listed``. ``race_free``: there is none; None where that is not
    known (the search was cut, the program has no meaning, or no execution reaches its end). ``own``: the model is
    none that comes with ptxmm, so that its flag may say something else than 8.7.1.
    """

    file: str
    test: str
    model: str
    status: Status
    races: tuple[Race, ...]
    listed: bool
    race_free: bool | None
    own: bool
    notes: tuple[Note, ...]
    seconds: float

    @property
    def answers(self) -> dict[str, str]:
        """The answer in a word, by what it is about (the program)."""
        return {"": {True: "race-free", False: "a data race", None: self.status}[self.race_free]}

    @property
    def finding(self) -> bool | None:
        """Whether there is a race."""
        return None if self.race_free is None else not self.race_free


class _Found(Search, kw_only=True):
    """What the searches so far found together, by the flags ``axioms``: at most so many races, each ``shown`` so.

    ``open``: writes that race unless they write the same value, which is not known.
    """

    axioms: Mapping[str, Axiom]
    most: int
    shown: Shown
    races: dict[SitePair, Race] = field(default_factory=dict)
    open: dict[SitePair, Race] = field(default_factory=dict)
    ends: bool = False
    partial: bool = False
    computed: list[str] = field(default_factory=list)

    @property
    def cut(self) -> bool:
        """Whether there may be others."""
        cut = self.timeout or self.partial or self.bounded or bool(self.computed) or bool(self.open)
        return cut or self.undefined is not None


def races(
    test: Test, model: Model, *, limits: Limits | None = None, most: int = MOST, graphs: bool = False
) -> RacesResult:
    """Every pair of instructions of ``test`` (up to ``most``) that races in an execution that ``model`` allows.

    The pairs come from the solver, one question each; every execution is confirmed, and the race found in it again on
    the concrete side; of polls that one stands for (``polls``), that one is listed. ``graphs``: give it as a graph.

    Raises ``PtxmmError``: kind ``unsupported`` where the model does not cover the test or says nothing about data
    races, ``internal`` where an execution is not confirmed; and what the engine raises.
    """
    limits = limits or Limits()
    start = time.perf_counter()
    check_compatible(test, model)
    either = either_way(test)
    test, telling = either.test, either.telling
    found = _Found(axioms=race_flags(model, test), most=most, shown=drawn if graphs else execution)
    try:
        test = settle_uninitialised(without_repeats(test), model, limits)
        for assigned in assignments(test):
            for part in (assigned.test, *held(assigned.test, next_grid(model))):
                _search(test, part, model, limits, found)
    except Timeout:
        found.timeout = True
    found.computed = computed_with(test) + left_open(test)
    listed = tuple(race for _, race in sorted(found.races.items()))
    status = status_of(found)
    if found.computed and status == "complete":
        status = "bounded"
    unknown = status != "complete" or not found.ends or bool(found.open)
    known = not telling or not (listed or status == "undefined" or either.loose)
    if not known:  # what was found need not be of an execution of the program
        listed, unknown, status = (), True, "complete" if status == "undefined" else status
        found.undefined, found.flags = None, set()
        found.open.clear()
    notes = [*_notes(test, found, limits), *_allowances(test, model, limits, found, known and not unknown)]
    if telling:
        notes.append(Note("open", note(telling, either.loose)))
    return RacesResult(
        file=test.file,
        test=test.name,
        model=model.name,
        status=told(status, bool(listed) or not unknown),
        races=listed,
        listed=known and not found.cut,
        race_free=False if listed else None if unknown else True,
        own=model.name not in index().models,
        notes=tuple(notes),
        seconds=time.perf_counter() - start,
    )


def confirm_races(test: Test, model: Model, found: RacesResult, limits: Limits) -> bool:
    """Whether the explicit engine got to its end; then it agrees that ``test`` has races, or none, as ``found`` says.

    Raises ``PtxmmError`` (kind ``internal``) if it does not agree, and what the engine raises.
    """
    explicit = engine_named("enumerate")
    raised, over, either = False, True, either_way(test)
    try:
        for assigned in assignments(settle_uninitialised(without_repeats(either.test), model, limits)):
            search = next(explicit(assigned.test, model, Observed((), ()), limits, None))
            if search.undefined is not None or search.flags & index().undefined:
                if not either.telling and found.status not in ("undefined", "timeout"):
                    raise bug(test, "the engines disagree: undefined only in enumerate, not in z3")
                return True
            raised = raised or DATA_RACE in search.flags
            over = over and not search.timeout
    except Timeout:
        over = False
    # Each side may have missed what it had no time for.
    if (raised and found.race_free) or (over and found.races and not raised):
        one, other = ("enumerate", "z3") if raised else ("z3", "enumerate")
        raise bug(test, f"the engines disagree: a data race only in {one}, not in {other}")
    return over


def race_flags(model: Model, test: Test) -> dict[str, Axiom]:
    """The flags of ``model`` for races, by name. Raises ``PtxmmError`` (kind ``unsupported``) if it has none."""
    found = {axiom.name: axiom for axiom in model.axioms if axiom.flag and axiom.name in (DATA_RACE, MIXED_SIZE)}
    relations = all(a.kind == "empty" and a.negated and not a.body.is_set for a in found.values())
    if DATA_RACE in found and relations:
        return found
    able = [name for name in index().models if any(a.flag and a.name == DATA_RACE for a in load(name).axioms)]
    raise PtxmmError(
        f"{model.name} does not say what a data race is",
        kind="unsupported",
        file=test.file,
        hint=f"use --model {' or --model '.join(able)}; in a model of your own: `flag ~empty RELATION as {DATA_RACE}`",
    )


def _search(test: Test, assigned: Test, model: Model, limits: Limits, found: _Found) -> None:
    """Add the races of ``assigned``, which is ``test`` with values for unknown memory."""
    axioms = found.axioms
    names = [name for name in (DATA_RACE, MIXED_SIZE) if name in axioms]
    pairs = RelatedSites(assigned, model, [axioms[name].body for name in names], limits)
    found.undefined = found.undefined or pairs.undefined
    found.bounded = found.bounded or pairs.bounded
    found.ends = found.ends or pairs.ends
    found.flags |= pairs.flags
    confirmer = Confirmer(assigned, model)
    racy = known = False
    for pair in pairs.candidates:
        if pair in found.races or pair in found.open:
            known = True
            continue
        if len(found.races) >= found.most:
            found.partial = True
            return
        for name in reversed(names):  # of a pair that races at different sizes too, that is what is shown
            witness = pairs.find(pair, names.index(name))
            if witness is not None:
                race = _race(test, axioms[name], pair, witness, confirmer, found.shown)
                (found.open if _is_open(test, pair, race) else found.races)[pair] = race
                racy = True
                break
    raised = DATA_RACE in pairs.flags
    # The flag of a model of one's own may be about initial writes or fences, which race with nothing.
    if racy != raised and not (raised and (known or pairs.left_out)):
        raise bug(test, f"the flag {DATA_RACE} of {model.name} and the racy pairs disagree")


def _is_open(test: Test, pair: SitePair, race: Race) -> bool:
    """Whether ``race`` is one of stores that may race with the same value, of which it is not known."""
    if race.mixed or not all(isinstance(test.at(site), Store | StoreMatrix) for site in pair):
        return False
    return all(map(test.allows, pair)) and not all(map(test.may_race, pair))


def _allowances(test: Test, model: Model, limits: Limits, found: _Found, complete: bool) -> Iterator[Note]:
    """What has become of the races that the launch or a line of the source allows."""
    for race in found.open.values():
        what = "results that are not worked out decide whether they write the same value"
        yield Note("race", f"{race.first} and {race.second} race: {what}")
    if test.same_value is not None and test.same_value.lines is None:
        yield Note("kernel", "races of writes of the same value are left out (same-value-races)")
    if test.claims is None or not test.claims.allowed:
        return
    written = {op.source.span.line for _, op in test.instructions if any(touch.writes for touch in touched(op))}
    lines = written & {item.line for item in test.claims.allowed}
    racing, every = _racing(test, model, limits, found, lines) if lines else (set[int](), True)
    complete = complete and every
    for item in test.claims.allowed:
        if item.line in racing:
            yield Note("kernel", f"line {item.line}: writes of the same value race, which is allowed: {item.why}")
        elif item.line not in written:
            yield Note("kernel", f"line {item.line}: no thread writes here, so that nothing is allowed: {item.why}")
        elif complete:
            yield Note("kernel", f"line {item.line}: no writes of the same value race here: {item.why}")


def _racing(test: Test, model: Model, limits: Limits, found: _Found, lines: set[int]) -> tuple[set[int], bool]:
    """Those of ``lines`` with writes that race, but with the same value only; and whether these are all."""
    every = races(replace(test, same_value=None, claims=None), model, limits=limits)
    still = {(race.first, race.second) for race in (*found.races.values(), *found.open.values())}
    racing: set[int] = set()
    for race in every.races:
        places = {race.first.line, race.second.line}
        if race.kinds == ("write", "write") and places <= lines and (race.first, race.second) not in still:
            racing |= places
    return racing, every.listed and not found.races


def _race(test: Test, axiom: Axiom, pair: SitePair, witness: Witness, confirmer: Confirmer, shown: Shown) -> Race:
    """The race of the instructions ``pair`` in ``witness``, which is confirmed first."""
    try:
        rebuilt = confirmer.allowed(witness)
    except Unconfirmed as error:
        raise bug(test, f"an execution with a race is not confirmed: {error}") from error
    layout = rebuilt.layout
    for a, b in layout.algebra.pairs(rebuilt.evaluator.value(axiom.body)):
        if max(a, b) >= layout.initial_first or not {layout.events[e].kind for e in (a, b)} <= {"R", "W"}:
            continue
        x, y = layout.events[a].id.site, layout.events[b].id.site
        if (min(x, y), max(x, y)) == pair:
            if x > y:
                a, b = b, a
            cells = [location(test, *(layout.events[e].cell or ("", 0, 0))) for e in (a, b)]
            return Race(
                first=instruction(test, *pair[0]),
                second=instruction(test, *pair[1]),
                mixed=axiom.name == MIXED_SIZE,
                locations=(cells[0], cells[1]),
                kinds=(_kind(rebuilt, a), _kind(rebuilt, b)),
                fails=tuple(conditions(test, rebuilt, a, b)),
                execution=shown(test, rebuilt),
            )
    raise bug(test, f"the race of {instruction(test, *pair[0])} and {instruction(test, *pair[1])} is not confirmed")


def _kind(rebuilt: Rebuilt, number: int) -> str:
    return "write" if rebuilt.layout.events[number].kind == "W" else "read"


def _notes(test: Test, found: _Found, limits: Limits) -> Iterator[Note]:
    if found.undefined is not None:
        yield Note("undefined", found.undefined)
    for flag in sorted((found.flags & index().undefined) - {MIXED_SIZE}):
        yield Note("undefined", f"some execution raises the flag {flag}")
    if MIXED_SIZE in found.flags:
        yield Note("undefined", "the axioms do not apply to data races of different sizes (8.7.2)")
    if found.bounded:
        yield Note("bound", bound_reached(test, limits.unroll))
    if found.timeout:
        yield TIMEOUT if test.claims is None else Note("timeout", f"{TIMEOUT.text}; {ALL_THREADS}")
    if found.partial:
        yield Note("limit", f"there may be more races than these {len(found.races)}; --most takes a higher limit")
    if not (found.ends or found.timeout or found.bounded or found.undefined):
        yield Note("vacuous", "no execution reaches its end" + (" and meets the filter" if test.filter else ""))
    if found.computed:
        yield Note("unknown", f"not all values that matter were tried: {'; '.join(found.computed)}")
