"""An execution as text and in JSON."""

from __future__ import annotations

from typing import Any

from ptxmm.analysis.execution import Access, Execution, Step
from ptxmm.analysis.instruction import Instruction
from ptxmm.render.style import clean


def execution_lines(execution: Execution, indent: str = "  ") -> list[str]:
    """What each instruction read and wrote, thread by thread, then the orders."""
    rows = [(_label(step), _effects(step)) for _, steps in execution.threads for step in steps]
    width = min(64, max((len(label) for label, _ in rows), default=0))
    lines = [f"{indent}{label:{width}}  {effects}".rstrip() for label, effects in rows]
    chains: dict[str, list[str]] = {}
    for where, a, b in execution.coherence:
        chains.setdefault(where, []).append(f"{a} before {b}")
    lines += [f"{indent}coherence order of {clean(where)}: {', '.join(found)}" for where, found in chains.items()]
    if execution.fences:
        lines.append(f"{indent}Fence-SC order: {', '.join(f'{a} before {b}' for a, b in execution.fences)}")
    return lines


def execution_document(execution: Execution) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "threads": [{"thread": name, "steps": [_step(step) for step in steps]} for name, steps in execution.threads],
        "coherence": [{"location": where, "first": a, "second": b} for where, a, b in execution.coherence],
        "fence_sc": [{"first": a, "second": b} for a, b in execution.fences],
    }


def instruction_document(found: Instruction) -> dict[str, Any]:
    """An instruction as JSON values."""
    return {"thread": found.thread, "line": found.line, "column": found.column, "text": found.text}


def _label(step: Step) -> str:
    again = f" (round {step.round + 1})" if step.round else ""
    return clean(str(step.instruction)) + again


def _effects(step: Step) -> str:
    return "; ".join(_effect(access) for access in step.accesses)


def _effect(access: Access) -> str:
    if access.kind == "W":
        return f"writes {clean(access.location)} = {access.value}"
    sources = " and ".join("its initial value" if s == "initial" else s for s in access.sources)
    return f"reads {clean(access.location)} = {access.value} from {sources}"


def _step(step: Step) -> dict[str, Any]:
    accesses = []
    for access in step.accesses:
        entry: dict[str, Any] = {"kind": access.kind, "location": access.location, "value": access.value}
        if access.kind == "R":
            entry["from"] = list(access.sources)
        accesses.append(entry)
    return {"instruction": instruction_document(step.instruction), "round": step.round, "accesses": accesses}
