"""Robustness as text."""

from __future__ import annotations

from ptxmm.analysis.robust import RobustResult
from ptxmm.render.execution import execution_lines
from ptxmm.render.style import Style
from ptxmm.render.text import head, outcome_line, separated, tail


def text(result: RobustResult, style: Style) -> list[str]:
    """How many states there are, then each that sequential consistency does not allow with an execution."""
    lines = [*head(result), f"States {result.states}, under sc {result.reference}"]
    for extra in result.extra:
        lines.append(style.paint(f"Not in sc: {outcome_line(extra.outcome)}", "red"))
        if extra.execution is not None:
            lines += execution_lines(extra.execution)
    lines += [f"Only in sc: {outcome_line(missing)}" for missing in result.missing]
    if result.deadlock:
        lines.append(style.paint("Not in sc: an execution that waits for ever", "red"))
    word, colour = {True: ("yes", "green"), False: ("no", "red"), None: ("unknown", "yellow")}[result.robust]
    lines.append(style.paint(f"Robust {word}", colour))
    if result.robust is False:
        lines.append("Repairs: ptxmm fences --property robust")
    return lines + tail(result)


pages = separated(text)
