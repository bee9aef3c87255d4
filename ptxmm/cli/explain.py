"""``ptxmm explain``: why a final state is allowed, or why not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli.analyses import Analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run

if TYPE_CHECKING:
    from ptxmm.analysis.explain import ExplainResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.condition import Proposition
    from ptxmm.program.test import Test


def explain(
    tests: OwnTests,
    *,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="STATE", help='What to explain, such as "P1:r0=1 x=2". [default: the test\'s condition]'
        ),
    ] = None,
    misses: Annotated[
        bool, typer.Option("--misses/--no-misses", help="Look for the weakest change that makes the state allowed.")
    ] = True,
    run: Run,
) -> None:
    """Explain why a final state is allowed, by an execution, or why not, by the reason for each execution.

    Exit code: 0 explained, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = Analysis(partial(_explain, state=state, misses=misses))
    answer(work, "explain", tests, run)


def _explain(test: Test, model: Model, limits: Limits, *, state: str | None, misses: bool) -> ExplainResult:
    from ptxmm.analysis.explain import explain as analysis

    wanted = None if state is None else _state(test, state)
    return analysis(test, model, limits=limits, state=wanted, misses=misses)


def _state(test: Test, state: str) -> Proposition:
    """The final states that ``--state`` names: propositions as in a condition, all of which hold.

    Raises ``PtxmmError`` as the parser of conditions does, with the place in ``state``.
    """
    from ptxmm.errors import PtxmmError
    from ptxmm.formats.conditions import connective_hint
    from ptxmm.formats.conditions import proposition as parse
    from ptxmm.formats.text import open_text
    from ptxmm.formats.tokens import Cursor
    from ptxmm.program.condition import Conjunction
    from ptxmm.program.propositions import names_of, proposition

    if not state.strip():
        raise PtxmmError("--state is empty", kind="usage", hint='write --state "P1:r0=1 x=2"')
    try:
        text = open_text(state, "--state")
        cursor = Cursor(text, text.characters, 0, len(text.characters))
        found = []
        while True:
            found.append(proposition(parse(cursor), names_of(test.threads, test.objects)))
            cursor.take(",")
            if cursor.peek().kind == "end":
                break
            if (hint := connective_hint(cursor)) is not None:
                raise cursor.unexpected("a register or location", hint=f"{hint}, or left out")
    except PtxmmError as error:
        raise error.place("--state", state) from None
    return found[0] if len(found) == 1 else Conjunction(tuple(found))
