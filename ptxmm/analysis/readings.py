"""Does a verdict depend on how an unclear sentence of the PTX ISA is read? One reading at a time is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptxmm.analysis.result import Note, Result
from ptxmm.cat import Model, index

EVENT_LEVEL = frozenset(("b128", "cas-failure", "co", "dep", "tear"))
"""The readings that the events of an execution take, whatever the text of the model."""


@dataclass(frozen=True, slots=True)
class Variation:
    """The verdict with one reading changed; ``result`` is that of the changed model."""

    key: str
    value: str
    result: Result


def alternatives(model: Model) -> Iterator[tuple[str, str]]:
    """Every (key, value) that differs from the readings of ``model`` and that ``model`` or its events take."""
    for key, reading in index().readings.items():
        if key in model.reading_keys or (key in EVENT_LEVEL and model.reading_keys):
            yield from [(key, value) for value in reading.values if value != model.readings[key]]


def vary(model: Model, check: Callable[[str, str], Result]) -> list[Variation]:
    """``check`` gives the result with one reading (key, value) of ``model`` changed."""
    return [Variation(key, value, check(key, value)) for key, value in alternatives(model)]


def rests_on(result: Result, variations: list[Variation]) -> tuple[Note, ...]:
    """What a result says of its readings: those whose change alone changes the verdict, with the sentence, or none."""
    if not variations:
        return (Note("reading", "the model has no readings"),)
    if result.status == "timeout":
        return (Note("reading", "what the verdict rests on was not found out: the time limit ended the search"),)
    notes = []
    for variation in variations:
        other = variation.result
        reading = index().readings[variation.key]
        if other.status == "timeout":
            text = f"{variation.key}={variation.value} could not be decided: the time limit ended the search"
            notes.append(Note("reading", text))
            continue
        if _verdict(other) == _verdict(result):
            continue
        notes.append(
            Note(
                "reading",
                f"rests on {variation.key}: {variation.key}={variation.value} gives {_words(other)} "
                f'(PTX ISA {reading.section}: "{reading.text}"; {reading.about})',
            )
        )
    if not notes:
        keys = len({v.key for v in variations})
        text = f"no other reading changes the verdict ({keys} readings changed one at a time)"
        return (Note("reading", text),)
    return tuple(notes)


def _verdict(result: Result) -> tuple[object, ...]:
    return result.observation, result.holds, result.status, "deadlock" in result.flags


def _words(result: Result) -> str:
    verdict = result.observation or ("none" if result.status in ("complete", "inconclusive") else result.status)
    return verdict + ("+deadlock" if "deadlock" in result.flags else "")
