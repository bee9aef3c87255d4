"""What was seen on a GPU against what a model allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ptxmm.analysis.observe import outcomes
from ptxmm.analysis.result import Note, Outcome, Status, Value
from ptxmm.analysis.search import Question, final_states, values
from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed
from ptxmm.hardware.looked_at import looked_at
from ptxmm.hardware.measured import Measured
from ptxmm.program.condition import State, evaluate
from ptxmm.program.test import Test

Verdict = Literal["violation", "suspected", "seen", "unseen", "forbidden", "listed", "open"]
"""``violation``: a state that the model forbids was seen, and again in a program of its own; ``suspected``: seen, but
not again, or the machine code is not known to be that of the test. Else of the condition: ``seen``; ``unseen``: the
model allows it; ``forbidden``: the model forbids it, and it was not seen; ``listed``: there is no condition.
``open``: nothing can be concluded."""


class SeenState(Struct, frozen=True):
    """A final state. ``count``: how often it was seen; ``allowed``: whether the model allows it, None where that is not
    known; ``satisfies``: the proposition of the condition."""

    registers: Mapping[str, Value]
    memory: Mapping[str, Value]
    count: int
    allowed: bool | None
    satisfies: bool | None


class RunResult(Struct, frozen=True, tag_field="analysis", tag="run"):
    """What was seen of a test on a GPU, compared with a model. ``verdict``: see ``Verdict``.

    ``instances``: how many ran, ``incomplete`` of them gave a loop up; ``took``: the seconds that this took.
    ``states``: those that were seen, the most frequent first, then those that the model allows and that were not.
    ``weak``: in how many the proposition of the condition held (None: there is no condition), and ``sibling``: the same
    of the test with all orders relaxed and no fences, run with the same placement (None: there is none). ``bound``:
    with a probability of 95 % a state that was never seen has at most this rate (3/n). ``gpu``: its name. ``status``:
    of the search for the states of the model.
    """

    file: str
    test: str
    model: str
    status: Status
    verdict: Verdict
    gpu: str
    placement: str
    quantifier: str | None
    condition: str | None
    instances: int
    incomplete: int
    launches: int
    took: float
    same_sm: int
    teams: int
    weak: int | None
    sibling: int | None
    sibling_instances: int
    bound: float | None
    states: tuple[SeenState, ...]
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> bool | None:
        """Whether the GPU violates the model; None where nothing can be concluded."""
        if self.verdict in ("suspected", "open"):
            return None
        return self.verdict == "violation"

    @property
    def rate(self) -> float:
        """Instances a second."""
        return self.instances / self.took if self.took else 0.0


class Allowed(Struct, frozen=True):
    """The final states of a test under a model, each as the values of what is observed. ``whole``: these are all;
    ``status`` and ``notes``: of the search."""

    states: tuple[tuple[int, ...], ...]
    whole: bool
    status: Status
    notes: tuple[Note, ...] = ()


def allowed(test: Test, model: Model, limits: Limits) -> Allowed:
    """What ``model`` allows. Raises ``PtxmmError`` as ``final_states`` does."""
    what = looked_at(test)
    found = final_states(Question(test, model, what, limits))
    states = tuple(values(what, state) for state in found.rows)
    return Allowed(
        states, found.status == "complete", found.status, tuple(found.remarks(model.name, "a loop reached its bound"))
    )


def state_of(what: Observed, content: Sequence[int]) -> State:
    """The final state with these values of what is observed."""
    registers = {(t.thread, t.register): _cut(v, t.type.bits) for t, v in zip(what.registers, content, strict=False)}
    rest = content[len(what.registers) :]
    memory = {(t.key, t.index): _cut(v, t.type.bits) for t, v in zip(what.memory, rest, strict=True)}
    return State(registers, memory)


def _cut(value: int, bits: int) -> int:
    return value & (1 << bits) - 1


def compared(
    test: Test,
    model: str,
    known: Allowed,
    found: Measured,
    *,
    gpu: str,
    placement: str,
    again: Measured | None = None,
    missing: Sequence[str] | None = None,
    sibling: Measured | None = None,
    seconds: float = 0.0,
) -> RunResult:
    """What was ``found`` of ``test`` against what the model allows (``known``).

    ``again``: a second run, in a program of its own and with another seed; ``missing``: what is wrong with the machine
    code, None where nobody looked; ``sibling``: the run of the relaxed sibling.
    """
    what = looked_at(test)
    condition = test.condition
    states = []
    strange: set[tuple[int, ...]] = set()
    for count, content in sorted(found.histogram, reverse=True):
        state = state_of(what, content)
        if test.filter is not None and not evaluate(test.filter, state):
            continue
        key = values(what, state)
        ok = True if key in known.states else False if known.whole else None
        if ok is False:
            strange.add(key)
        states.append(_seen(test, what, state, count, ok))
    met = {values(what, state_of(what, content)) for _, content in found.histogram}
    states += [_seen(test, what, state_of(what, key), 0, True) for key in known.states if key not in met]
    weak = None if condition is None else sum(s.count for s in states if s.satisfies)
    verdict = _verdict(test, known, found, strange, weak, again, missing)
    relaxed = None if sibling is None or sibling.invalid or condition is None else _weak(test, what, sibling)
    return RunResult(
        file=test.file,
        test=test.name,
        model=model,
        status=known.status,
        verdict=verdict,
        gpu=gpu,
        placement=placement,
        quantifier=None if condition is None else condition.kind,
        condition=None if condition is None else condition.text,
        instances=found.instances,
        incomplete=found.incomplete,
        launches=found.launches,
        took=found.seconds,
        same_sm=found.same_sm,
        teams=found.teams,
        weak=weak,
        sibling=relaxed,
        sibling_instances=0 if sibling is None else sibling.instances,
        bound=3 / (found.instances - found.incomplete) if found.instances > found.incomplete else None,
        states=tuple(states),
        notes=(*known.notes, *_remarks(found, missing)),
        seconds=seconds,
    )


def _remarks(found: Measured, missing: Sequence[str] | None) -> Iterator[Note]:
    """What is to be said of the run itself."""
    if found.invalid is not None:
        yield Note("invalid", found.invalid)
    if missing is None:
        yield Note(
            "machine-code", "the machine code was not looked at: nvdisasm was not found, or the tests ran elsewhere"
        )
    yield from (Note("machine-code", text) for text in missing or ())
    if found.incomplete:
        yield Note("incomplete", f"{found.incomplete} instances gave a loop up and are left out")


def _verdict(
    test: Test,
    known: Allowed,
    found: Measured,
    strange: set[tuple[int, ...]],
    weak: int | None,
    again: Measured | None,
    missing: Sequence[str] | None,
) -> Verdict:
    if found.invalid is not None or not found.histogram or known.status == "undefined":
        return "open"
    if strange:
        what = looked_at(test)
        seen_again = (
            again is not None
            and again.invalid is None
            and strange & {values(what, state_of(what, content)) for _, content in again.histogram}
        )
        return "violation" if seen_again and missing is not None and not missing else "suspected"
    if missing:
        return "open"
    if weak is None:
        return "listed"
    if weak:
        return "seen"
    if not known.whole:
        return "open"
    condition = test.condition
    assert condition is not None
    what = looked_at(test)
    possible = any(evaluate(condition.proposition, state_of(what, key)) for key in known.states)
    return "unseen" if possible else "forbidden"


def _weak(test: Test, what: Observed, found: Measured) -> int:
    """In how many instances the proposition of the condition of ``test`` held."""
    assert test.condition is not None
    proposition = test.condition.proposition
    return sum(count for count, content in found.histogram if evaluate(proposition, state_of(what, content)))


def _seen(test: Test, what: Observed, state: State, count: int, ok: bool | None) -> SeenState:
    shown: Outcome = next(iter(outcomes(test, what, (state,))))
    return SeenState(shown.registers, shown.memory, count, ok, shown.satisfies)
