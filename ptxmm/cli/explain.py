"""``ptxmm explain``: why a final state is allowed, or why not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli.analyses import analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import Each, OwnTests, Run, graphs_of

if TYPE_CHECKING:
    from ptxmm.analysis.explain import ExplainResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
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
        bool,
        typer.Option(
            "--misses/--no-misses", help="Look for the smallest changes that make the state allowed, or forbidden."
        ),
    ] = True,
    definitions: Annotated[
        bool,
        typer.Option("--definitions", help="In text: each step with its definition and the sentence of the PTX ISA."),
    ] = False,
    each: Each = False,
    run: Run,
) -> None:
    """Explain why a final state is allowed, by an execution, or why not, by the reason for each execution.

    Exit code: 0 explained, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = analysis(partial(_explain, state=state, misses=misses, graphs=graphs_of(run)))
    answer(work, "explain", tests, run, each=each, definitions=definitions)


def _explain(
    test: Test, model: Model, limits: Limits, *, state: str | None, misses: bool, graphs: bool
) -> ExplainResult:
    from ptxmm.analysis.explain import explain as explained
    from ptxmm.formats.questions import states

    wanted = None if state is None else states(test, state, "--state")
    return explained(test, model, limits=limits, state=wanted, misses=misses, graphs=graphs)
