"""An execution as text."""

from __future__ import annotations

from ptxmm.analysis.result import Access, Execution, Step
from ptxmm.render.style import clean


def execution_lines(execution: Execution, indent: str = "  ") -> list[str]:
    """What each instruction read and wrote, thread by thread, then the orders."""
    steps = [step for thread in execution.threads for step in thread.steps]
    rows = [(_label(step), "; ".join(map(_effect, step.accesses))) for step in steps]
    width = min(64, max((len(label) for label, _ in rows), default=0))
    lines = [f"{indent}{label:{width}}  {effects}".rstrip() for label, effects in rows]
    chains: dict[str, list[str]] = {}
    for pair in execution.coherence:
        chains.setdefault(pair.location, []).append(f"{pair.first} before {pair.second}")
    lines += [f"{indent}coherence order of {clean(where)}: {', '.join(pairs)}" for where, pairs in chains.items()]
    if execution.fence_sc:
        found = ", ".join(f"{pair.first} before {pair.second}" for pair in execution.fence_sc)
        lines.append(f"{indent}Fence-SC order: {found}")
    return lines


def _label(step: Step) -> str:
    again = f" (round {step.round + 1})" if step.round else ""
    return clean(str(step.instruction)) + again


def _effect(access: Access) -> str:
    if access.kind == "W":
        return f"writes {clean(access.location)} = {access.value}"
    sources = " and ".join("its initial value" if s == "initial" else s for s in access.sources)
    return f"reads {clean(access.location)} = {access.value} from {sources}"
