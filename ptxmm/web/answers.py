"""The answer to a request: from bytes to bytes, in whichever process asks.

Nothing of a request names a file: models are those that come with ptxmm, tests are texts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ptxmm.analysis import told
from ptxmm.analysis.claims import HOLDS, assumed_of, claimed, limits_of
from ptxmm.analysis.expectation import expectation_for, expectations
from ptxmm.analysis.placements import LEVELS, WORDS, placed
from ptxmm.analysis.result import Outcome
from ptxmm.analysis.strength.dials import dials, turned
from ptxmm.cat import Model, index, left_out_of, load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import SUFFIXES, format_of, parse, questions
from ptxmm.formats.litmus import write
from ptxmm.formats.patch import Rewrite, moved, patched
from ptxmm.program.test import Test
from ptxmm.render import Entry, Page, renderer
from ptxmm.web.requests import (
    MOST_BYTES,
    Analysed,
    Answer,
    Check,
    Checked,
    Explain,
    Fences,
    Placing,
    Program,
    Request,
    Row,
    Stage,
    refused,
)

if TYPE_CHECKING:
    from ptxmm.analysis.explain import ExplainResult
    from ptxmm.analysis.fences import Repair

NAME = "playground"
MOST = 500
"""So many final states are listed."""


def answer(data: bytes, seconds: float, engine: str = "auto") -> bytes:
    """The JSON of the answer to the JSON of a request, after ``seconds`` at most where the engines look at the clock.
    ``engine``: the one that decides verdicts, as of ``analysis.told.Asked``; reasons and fences are always Z3's.

    What is wrong with the request or its test is an answer of kind ``error``.
    """
    return encoded(_answer(data, time.monotonic() + seconds, engine))


def encoded(found: Answer) -> bytes:
    """The JSON of ``found``, which holds no markup whoever takes it for a page."""
    return msgspec.json.encode(found).replace(b"<", b"\\u003c")


def prepare() -> None:
    """Load and build what every answer needs, so that a process that is forked off has it already."""
    from ptxmm.analysis import explain, fences, kernel, outcomes, undefined  # noqa: F401
    from ptxmm.engines.symbolic.library import library

    library()
    for name in index().models:
        load(name)
    for text in _SAMPLES:
        _test(text)


_SAMPLES = (
    "PTX a\n{ .global .u32 x = 0; }\n P0 ;\n st.global.u32 [x], 1 ;\nexists (x == 1)",
    "PTX b\n{ x = 0; P0:r1 = 1; }\n P0 ;\n st.relaxed.gpu x, 1 ;\nexists (x == 1)",
)
"""Texts of both dialects: the grammars are built when they are first needed."""


def _answer(data: bytes, deadline: float, engine: str) -> Answer:
    if len(data) > MOST_BYTES:
        return refused(PtxmmError(f"the request has more than {MOST_BYTES} bytes", kind="request"))
    try:
        request = msgspec.json.decode(data, type=Request)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return refused(PtxmmError(f"this is no request: {error}", kind="request"))
    text = None
    try:
        name = _model(request)
        given = _given(request)
        model = load(assumed_of(given.test, name, request.readings), request.readings)
        test = _turned(given.test, request, model)
        text = test.text
        limits = limits_of(test, Limits(unroll=request.unroll, deadline=deadline))
        match request:
            case Check():
                return _checked(given, test, model, limits, request, engine)
            case Explain():
                return _explained(test, model, limits, request)
            case _:
                return _fences(test, model, limits, request)
    except PtxmmError as error:
        return refused(error, text)
    except RecursionError:
        return refused(PtxmmError("the test is nested too deeply"), text)


def _model(program: Program) -> str:
    """The model that the program is run under, which can be loaded; only those that come with ptxmm can be named."""
    known = index().models
    if program.model not in known:
        close = get_close_matches(program.model, known, 1)
        raise PtxmmError("there is no such model", kind="usage", hint=f"did you mean {close[0]}?" if close else None)
    name = left_out_of(program.model, program.without) if program.without else program.model
    load(name, program.readings)
    return name


class _Given(Struct, frozen=True):
    """What the text of a request holds: the ``format``, the names of its ``parts``, and the one that is asked about."""

    format: str
    parts: tuple[str, ...]
    test: Test
    claim: str | None


def _given(program: Program) -> _Given:
    """No file but the text itself says anything: what a kernel is launched with has to be in its comments."""
    chosen = format_of(program.text, NAME)
    if chosen == "ptx":
        from ptxmm.formats.modules.launch import has_comments

        if not has_comments(program.text):
            hint = "say how its kernel is launched in comments of the module: `// ptxmm: grid = 2`"
            raise PtxmmError("nothing is said of a launch", kind="format", line=1, hint=hint)
    suffix = next(suffix for suffix, format in SUFFIXES.items() if format == chosen)
    parts = [(test, claim) for test in parse(program.text, NAME + suffix, chosen) for claim in claimed(test)]
    test, claim = parts[min(program.part, len(parts) - 1)]
    return _Given(chosen, tuple(_part(*part) for part in parts), test, claim)


def _part(test: Test, claim: str | None) -> str:
    about = claim or (" ".join(test.description.split()) if test.claims is None else "condition")
    return f"{test.name}: {about}" if about else test.name


def _test(text: str) -> Test:
    (test,) = parse(text, f"{NAME}.litmus", "litmus")
    return test


def _turned(test: Test, program: Program, model: Model) -> Test:
    """``test`` with its dials as the program has them, read back from its text."""
    if test.claims is not None and (program.turns or program.level is not None):
        raise PtxmmError("the threads and instructions of a kernel stay as they are", kind="usage")
    if program.turns:
        wanted, changed = turned(test, program.turns, model.coverage)
        rewrites = [Rewrite(*site, False, op) for site, op in changed.items()]
        test = _test(patched(test, rewrites, wanted) or write(wanted))
    if program.level is not None:
        if program.level not in LEVELS:
            raise PtxmmError("there is no such placement", kind="usage", hint=f"placements: {', '.join(LEVELS)}")
        place = placed(test, program.level, model.coverage)
        if place.test is None:
            raise PtxmmError(f"{WORDS[program.level]}: not here: {place.reason}", kind="unsupported")
        test = _test(moved(test, place.test) or write(place.test))
    return test


def _checked(given: _Given, test: Test, model: Model, limits: Limits, request: Check, engine: str) -> Checked:
    stated = expectations(test, index().models.keys())
    expectation = None
    if not (request.without or request.turns or request.level):
        expectation = expectation_for(test, request.model, stated, request.readings)
        if expectation is not None and test.claims is not None:
            expectation = HOLDS
    asked = told.Asked(engine=engine, all_state=request.all_state, listing=MOST)
    result = told.verdict(test, request.model, model, limits, asked, expectation=expectation, claim=given.claim)
    columns, rows = _table(result.outcomes)
    own = {name: getattr(result, name) for name in Checked.__struct_fields__ if hasattr(result, name)}
    own |= {"conclusion": result.conclusion.value}
    turns = given.format == "litmus"
    return Checked(
        **own,
        text=test.text,
        description=test.description,
        info=test.info,
        columns=columns,
        rows=rows,
        format=given.format,
        parts=given.parts,
        claim=given.claim,
        litmus=None if turns else _litmus(given.test),
        dials=tuple(dials(given.test, model.coverage)) if turns else (),
        placings=tuple(_placings(given.test, model)) if turns else (),
    )


def _litmus(test: Test) -> str | None:
    """``test``, which is written otherwise, as a litmus test."""
    try:
        if test.claims is None:
            return write(test)
        from ptxmm.formats.modules.extract import skeleton

        return skeleton(test)
    except PtxmmError:
        return None


def _table(outcomes: Sequence[Outcome]) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """Final states as rows of the text of their values, as conditions take it."""
    columns: tuple[str, ...] = ()
    rows = []
    for outcome in outcomes:
        values = {**outcome.registers, **outcome.memory}
        columns = tuple(values)
        rows.append(Row(tuple(map(str, values.values())), outcome.satisfies))
    return columns, tuple(rows)


def _placings(test: Test, model: Model) -> list[Placing]:
    if sum(not thread.placement.host for thread in test.threads) < 2:
        return []
    found = [placed(test, level, model.coverage) for level in LEVELS]
    return [Placing(place.level, WORDS[place.level], place.reason) for place in found]


def _explained(test: Test, model: Model, limits: Limits, request: Explain) -> Analysed:
    from ptxmm.analysis.explain import explain
    from ptxmm.render.pictures import svg

    wanted = None if request.state is None else questions.states(test, request.state, "the state")

    def function(test: Test, model: Model, limits: Limits) -> ExplainResult:
        return explain(test, model, limits=limits, state=wanted, misses=request.misses, repaired=False, graphs=True)

    result = told.analysed(test, request.model, model, limits, function)
    picture = svg(result) if result.verdict in ("allowed", "forbidden") else None
    return Analysed(test.text, _document("explain", result), picture, _stages(result))


def _stages(result: ExplainResult) -> tuple[Stage, ...]:
    """The stages of the execution that the picture of ``result`` shows."""
    from ptxmm.web.stages import stages

    reason = next((reason for group in result.groups for reason in group.reasons), None)
    shown = result.execution if reason is None else reason.execution
    if shown is None or shown.graph is None or result.verdict not in ("allowed", "forbidden"):
        return ()
    return stages(shown.graph, result.model, reason, result.expected)


def _fences(test: Test, model: Model, limits: Limits, request: Fences) -> Analysed:
    from ptxmm.analysis.fences import FencesResult, fences

    def function(test: Test, model: Model, limits: Limits) -> FencesResult:
        return fences(test, model, limits=limits)

    def brief(test: Test, model: Model, limits: Limits) -> FencesResult:
        return fences(test, model, limits=limits, most=1)

    result = told.analysed(test, request.model, model, limits, function, brief)
    texts = tuple(_repaired(repair) for repair in result.repairs)
    return Analysed(test.text, _document("fences", result), changed=texts)


def _repaired(repair: Repair) -> str | None:
    """The text of the repaired program; None where it can't be changed like that."""
    rewrites = [Rewrite(c.number, c.index + c.after, c.kind == "insert", c.op) for c in repair.changes]
    return patched(repair.source, rewrites, repair.program)


def _document(kind: str, result: object) -> dict[str, object]:
    """The entry of ``result`` in its JSON document."""
    entry: Entry[object] = Entry(result)
    text = "".join(renderer(kind, "json")([entry], Page()))
    (found,) = msgspec.json.decode(text.encode())["results"]
    return {name: _exact(value) for name, value in found.items()}


def _exact(value: object) -> object:
    """``value`` with integers that JavaScript would round as text, and without the graphs that pictures are made of."""
    match value:
        case int() if abs(value) > 1 << 53:
            return str(value)
        case dict():
            return {name: _exact(item) for name, item in value.items() if name != "graph"}
        case list():
            return [_exact(item) for item in value]
    return value
