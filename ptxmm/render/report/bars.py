"""What was seen on a GPU as a table with a bar for each final state."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import log

from ptxmm.hardware.compare import RunResult, SeenState
from ptxmm.render.style import clean

_LENGTH = 160
_KINDS = {True: ("allowed", "good"), False: ("forbidden", "bad"), None: ("not known", "unsure")}
"""What the model says of a state, and how its bar looks."""


def bars(result: RunResult) -> Iterator[str]:
    """The states that were seen or are allowed, how often each was seen, and what the model says."""
    if not result.states:
        return
    first = result.states[0]
    heads = ["*", *first.registers, *first.memory, "Seen", "Rate", "Model", "Seen (logarithmic)"]
    cells = "".join(f'<th scope="col">{escape(clean(head))}</th>' for head in heads)
    yield '<div class="scroll" tabindex="0"><table><caption>Final states; * satisfies the condition</caption>'
    yield f"<thead><tr>{cells}</tr></thead><tbody>"
    for state in result.states:
        told, look = _KINDS[state.allowed]
        values = [*state.registers.values(), *state.memory.values(), f"{state.count:,}", _rate(state, result)]
        cells = "".join(f"<td>{escape(clean(str(value)))}</td>" for value in values)
        marked = ' class="satisfies"' if state.satisfies else ""
        yield f'<tr{marked}><td>{"*" if state.satisfies else ""}</td>{cells}<td class="{look}">{told}</td>'
        yield f"<td>{_bar(state.count, result.instances, look)}</td></tr>"
    yield "</tbody></table></div>"


def _rate(state: SeenState, result: RunResult) -> str:
    """Its share of the instances; of what was never seen, what it is at most with a probability of 95 %."""
    if state.count:
        return f"{state.count / (result.instances - result.incomplete):.1e}"
    return "never seen" if result.bound is None else f"at most {result.bound:.1e}"


def _bar(count: int, all_of_them: int, look: str) -> str:
    """A bar as long as the number of digits of ``count``; nothing for 0."""
    length = round(_LENGTH * log(count + 1) / log(all_of_them + 1)) if count else 0
    rectangle = f'<rect class="{look}" width="{max(length, 1)}" height="12"/>' if length else ""
    return f'<svg class="bar" width="{_LENGTH}" height="12" aria-hidden="true">{rectangle}</svg>'
