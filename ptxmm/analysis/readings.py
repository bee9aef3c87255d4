"""Does a verdict depend on how an unclear sentence of the PTX ISA is read? One reading at a time is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from ptxmm.analysis.result import Note, Result
from ptxmm.cat import Model, index
from ptxmm.cat.shipped import WITHOUT
from ptxmm.program.test import Test
from ptxmm.ptx.ops import FAMILIES, Load, Store, Wgmma, elements

EVENT_LEVEL = frozenset(("b128", "cas-failure", "co", "dep", "tear", "vector", "wgmma-mov"))
"""The readings that the events of an execution take, whatever the text of the model."""
_DEPENDENCIES = frozenset(("addr", "data", "ctrl"))


class Variation(Struct, frozen=True):
    """The verdict with one reading changed; ``result`` is that of the changed model."""

    key: str
    value: str
    result: Result


def effective(model: Model, key: str) -> bool:
    """Whether the text of ``model``, or the events of an execution, ask for this reading."""
    if key == "dep" and not any(_DEPENDENCIES & axiom.body.depends for axiom in model.axioms):
        return False
    return key in model.reading_keys or key in EVENT_LEVEL


def basis(model: Model) -> list[Note]:
    """What a verdict under ``model`` rests on beside its text: the readings that are not the default, with those that
    make no difference, what is left out, and what is defined in vain."""
    notes = []
    for key, value in sorted(model.readings.items()):
        if model.defaults.get(key) != value and key != WITHOUT:
            idle = "" if effective(model, key) else f" has no effect on {model.name}"
            notes.append(Note("reading", f"reading {key}={value}{idle}"))
    if model.left_out:
        notes.append(Note("model", f"without {', '.join(model.left_out)}"))
    return notes + [Note("model", warning.split("\n")[0]) for warning in model.warnings]


def alternatives(model: Model) -> Iterator[tuple[str, str]]:
    """Every (key, value) that differs from the readings of ``model`` and that ``model`` or its events take."""
    for key, reading in index().readings.items():
        if model.reading_keys and effective(model, key):
            yield from [(key, value) for value in reading.values if value != model.readings[key]]


def vary(model: Model, check: Callable[[str, str], Result], of: Iterable[tuple[str, str]] = ()) -> list[Variation]:
    """``check`` gives the result with one reading (key, value) of ``model`` changed: ``of`` these, else each."""
    return [Variation(key, value, check(key, value)) for key, value in of or alternatives(model)]


def may_decide(test: Test, model: Model, result: Result) -> list[tuple[str, str]]:
    """The changes of readings of which every answer tells, and that may change ``result``: they only allow less than
    the default."""
    settled = result.observation == "never" and not result.flags
    return [] if settled or result.status not in ("complete", "undefined") else told(test, model)


def told(test: Test, model: Model) -> list[tuple[str, str]]:
    """The changes of readings of which every answer tells, if ``test`` has instructions that they are about."""
    families, body = (*FAMILIES["asynchronous"], *FAMILIES["tensor memory"]), [op for _, op in test.instructions]
    asynchronous = any(isinstance(op, families) for op in body)
    vectors = any(isinstance(op, Load | Store) and elements(op) != elements(op, whole=True) for op in body)
    products = any(isinstance(op, Wgmma) for op in body)
    own = {"vector": vectors, "wgmma-mov": products}
    return [(key, value) for key, value in _told(model) if own.get(key, asynchronous)]


@lru_cache(maxsize=64)
def _told(model: Model) -> tuple[tuple[str, str], ...]:
    """The changes of its readings of which every answer tells."""
    known = index().readings
    return tuple(item for item in alternatives(model) if known[item[0]].told)


def decided_answers(
    changes: Iterable[tuple[str, str]], answers: Mapping[str, str], changed: Callable[[str, str], Mapping[str, str]]
) -> tuple[Note, ...]:
    """As ``decided_by``, for an analysis with several ``answers``, by what they are about ("": the program).

    ``changed`` gives the answers with one reading (key, value) of ``changes`` changed; none for which there was no
    time.
    """
    notes = []
    for key, value in changes:
        others = changed(key, value)
        for about, answer in answers.items():
            if others.get(about, answer) != answer:
                subject = f"{about}: {answer}: " if about else ""
                notes.append(_rests(key, value, others[about], subject))
    return tuple(notes)


def decided_by(result: Result, variations: list[Variation]) -> tuple[Note, ...]:
    """The readings whose change alone changes the verdict, and those of which there was no time to find out."""
    found = rests_on(result, variations) if variations else ()
    return tuple(note for note in found if not note.text.startswith("no other"))


def rests_on(result: Result, variations: list[Variation]) -> tuple[Note, ...]:
    """What a result says of its readings: those whose change alone changes the verdict, with the sentence, or none."""
    if not variations:
        return (Note("reading", "the model has no readings"),)
    if result.status == "timeout":
        return (Note("reading", "what the verdict rests on was not found out: the time limit ended the search"),)
    notes = []
    for variation in variations:
        other = variation.result
        if other.status == "timeout":
            text = f"{variation.key}={variation.value} could not be decided: the time limit ended the search"
            notes.append(Note("reading", text))
            continue
        if _verdict(other) == _verdict(result):
            continue
        notes.append(_rests(variation.key, variation.value, _words(other, result.expected)))
    if not notes:
        keys = len({v.key for v in variations})
        text = f"no other reading changes the verdict ({keys} readings changed one at a time)"
        return (Note("reading", text),)
    return tuple(notes)


def _rests(key: str, value: str, other: str, subject: str = "") -> Note:
    reading = index().readings[key]
    sentence = f'PTX ISA {reading.section}: "{reading.text}"; {reading.about}'
    return Note("reading", f"{subject}rests on {key}: {key}={value} gives {other} ({sentence})")


def _verdict(result: Result) -> tuple[object, ...]:
    return result.observation, result.holds, result.status, "deadlock" in result.flags


def _words(result: Result, expected: str | None) -> str:
    """The verdict, as it is told where this was ``expected``: of what is claimed of a kernel, whether it holds."""
    if expected == "holds" and result.quantifier is not None and not result.flags:
        return {True: "holds", False: "fails", None: result.status}[result.holds]
    verdict = result.observation or ("none" if result.status in ("complete", "inconclusive") else result.status)
    return verdict + ("+deadlock" if "deadlock" in result.flags else "")
