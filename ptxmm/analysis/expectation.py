"""What a test says its verdict should be (``Expect=``), and whether a verdict agrees with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from msgspec import Struct

from ptxmm.analysis.readings import effective
from ptxmm.analysis.verdict import Verdict
from ptxmm.analysis.words import Conclusion
from ptxmm.cat import load, specification, split_specification
from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test

WORDS = ("never", "sometimes", "always", "undefined", "none")


class Expectation(Struct, frozen=True):
    """``word``: one of ``WORDS``, or ``holds`` (the quantified statement does). ``deadlock``: some execution must wait
    for ever at a barrier (None: not said, as for ``holds``)."""

    word: str
    deadlock: bool | None

    def __str__(self) -> str:
        return self.word + ("+deadlock" if self.deadlock else "")


def expectations(test: Test, known: Collection[str]) -> dict[str, Expectation]:
    """The expectations that ``test`` states in its ``Expect=`` lines, by model, in the order written.

    ``known`` are the names of the models shipped. A bare word is about the test's default model. A model may have
    readings (``ptx-8.5[dep=syn]:sometimes``); it is then given as ``cat.specification`` writes it.
    Raises ``PtxmmError`` (kind ``format``) at an item that is malformed or said twice.
    """
    found: dict[str, Expectation] = {}
    for key, value in test.info:
        if key != "Expect":
            if key.lower().startswith("expect"):
                # Not to be checked for a slip of the pen would be worse than an error.
                raise _error(test, key, f"`{key}=` is not checked", "write `Expect=`")
            continue
        if not value.split():
            raise _error(test, value, "`Expect=` says nothing", "write for instance `Expect=ptx-8.5:never`")
        for item in value.split():
            model, expectation = _item(test, item, known)
            if model in found:
                raise _error(test, item, f"two expectations for the model {model}", None)
            found[model] = expectation
    return found


def expectation_for(
    test: Test, model: str, stated: Mapping[str, Expectation], readings: Mapping[str, str] | None = None
) -> Expectation | None:
    """The expectation for ``model`` with these ``readings``, or else for ``model`` itself; without any ``Expect=``,
    ``~exists`` and ``forall`` conditions are to hold."""
    for known in (specification(model, readings or {}), model):
        if known in stated:
            return stated[known]
    if not stated and test.condition is not None and test.condition.kind in ("~exists", "forall"):
        return Expectation("holds", None)
    return None


def conclude(expectation: Expectation | None, verdict: Verdict, found: Collection[bool | None]) -> Conclusion:
    """Whether ``verdict`` agrees with ``expectation``.

    ``found``: for each final state found, whether it satisfies the proposition (None: the test has no condition).
    """
    if expectation is None:
        settled = verdict.holds is not None if verdict.conditional else verdict.status == "complete"
        return Conclusion.unchecked if settled else Conclusion.inconclusive
    parts = [_agrees(expectation.word, verdict, found)]
    if expectation.deadlock is not None:
        deadlock = "deadlock" in verdict.flags
        # A deadlock that is expected may still be found; that none is found is all that a cut search can say.
        awaited = expectation.deadlock and not deadlock and verdict.status in ("bounded", "timeout")
        parts.append(None if awaited else deadlock == expectation.deadlock)
    if False in parts:
        return Conclusion.contradicted
    return Conclusion.inconclusive if None in parts else Conclusion.expected


def _agrees(word: str, verdict: Verdict, found: Collection[bool | None]) -> bool | None:
    """True or False where the verdict settles the word, None where a longer search could change it."""
    if word == "undefined" or verdict.status == "undefined":
        if word == "undefined" and verdict.status in ("bounded", "timeout"):
            return None
        return word == verdict.status
    if word == "holds":
        return verdict.holds
    if word == "none":
        return False if found else (True if verdict.status == "complete" else None)
    if verdict.observation is not None:
        return word == verdict.observation
    if (word == "never" and True in found) or (word == "always" and False in found):
        return False  # however the search goes on
    return False if verdict.status == "complete" else None


def _item(test: Test, item: str, known: Collection[str]) -> tuple[str, Expectation]:
    model, colon, text = item.rpartition(":")
    model = _model(test, item, model, known) if colon else test.default_model
    word, plus, deadlock = text.partition("+")
    if text == "holds":
        return model, Expectation(word, None)
    if word not in WORDS or (plus and deadlock != "deadlock"):
        hint = f"one of {', '.join(WORDS)}, with an optional +deadlock; or holds"
        raise _error(test, item, f"{text!r} is not an expectation", hint)
    return model, Expectation(word, bool(plus))


def _model(test: Test, item: str, text: str, known: Collection[str]) -> str:
    """The model, with its readings if it has some, that an item of ``Expect=`` is about."""
    try:
        model, readings = split_specification(text)
    except PtxmmError as error:
        raise _error(test, item, error.message, error.hint) from None
    if model not in known:
        close = get_close_matches(model, known, 1)
        hint = f"did you mean {close[0]}?" if close else "models: " + ", ".join(sorted(known))
        raise _error(test, item, f"unknown model {model!r} in `Expect=`", hint)
    if readings:
        try:
            loaded = load(model, readings)
        except PtxmmError as error:
            raise _error(test, item, error.message, error.hint) from None
        for key in readings:
            if not effective(loaded, key):
                raise _error(test, item, f"the reading {key} has no effect on {model}", None)
    return specification(model, readings)


def _error(test: Test, item: str, message: str, hint: str | None) -> PtxmmError:
    line, column = _place(test, item) or (None, None)
    error = PtxmmError(message, kind="format", line=line, column=column, width=max(1, len(item)), hint=hint)
    return error.place(test.file, test.text)


def _place(test: Test, item: str) -> tuple[int, int] | None:
    """The line and column of ``item`` in an ``Expect=`` line of the text."""
    for number, source in enumerate(test.text.splitlines(), 1):
        match = re.match(r"\s*(?=Expect)\w+\s*=", source, re.IGNORECASE)
        if match and item in source:
            at = source.find(item, match.end())
            return number, (at if item and at >= 0 else source.find(item)) + 1
    return None
