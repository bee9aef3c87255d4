"""Executions that never end as text."""

from __future__ import annotations

from ptxmm.analysis.progress.result import ProgressResult, Seen, ThreadReport
from ptxmm.analysis.result import Execution, ThreadSteps
from ptxmm.render.execution import execution_lines
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail

_COLOURS = {"terminates": "green", "may hang": "red", "unknown": "yellow"}


def text(result: ProgressResult, style: Style) -> list[str]:
    """The verdict and, thread by thread, the execution that never ends."""
    lines = [*head(result), style.paint(f"Progress {result.verdict}", _COLOURS[result.verdict])]
    for thread in result.threads:
        lines.append(f"  {clean(thread.thread)} {clean(_state(thread))}")
        lines += execution_lines(Execution((ThreadSteps(thread.thread, thread.steps),), (), ()), "    ")
        for seen in thread.seen:
            lines.append(f"    for ever: {clean(_seen(seen))}")
            lines += [f"      {clean(reason)}" for reason in seen.reasons]
    return lines + tail(result)


def _state(thread: ThreadReport) -> str:
    at = "" if thread.at is None else f" {thread.at}"
    match thread.state:
        case "spins":
            first, last = thread.lines or (0, 0)
            return f"spins for ever in {f'line {first}' if first == last else f'lines {first} to {last}'}"
        case "waits":
            return f"waits for ever at{at}"
        case "held":
            return f"waits for ever for an earlier grid, before{at}" if at else "waits for ever for an earlier grid"
        case "stops":
            begun = "is left out of the schedule for ever" if thread.steps else "is never scheduled"
            return f"{begun}; next is{at}" if at and thread.steps else begun
    return "ends"


def _seen(seen: Seen) -> str:
    if not seen.source:
        return f"{seen.instruction} returns false"
    source = seen.source.replace("initial", "its initial value")
    return f"{seen.instruction} reads {seen.location} = {seen.value} from {source}"


pages = separated(text)
