"""An execution as text."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.analysis.result import Access, Execution
from ptxmm.render.style import clean
from ptxmm.words import number_of


def execution_lines(execution: Execution, indent: str = "  ") -> list[str]:
    """What each instruction read and wrote, thread by thread, then the orders."""
    steps = [step for thread in execution.threads for step in thread.steps]
    rows = [(clean(step.name), "; ".join(map(_effect, step.accesses))) for step in steps]
    width = min(64, max((len(label) for label, _ in rows), default=0))
    lines = [f"{indent}{label:{width}}  {effects}".rstrip() for label, effects in rows]
    if execution.folded:
        what = "that only access .local memory or read what nothing writes"
        lines.append(f"{indent}({number_of(execution.folded, 'instruction')} {what}: left out)")
    orders: dict[str, list[tuple[str, str]]] = {}
    for pair in execution.coherence:
        orders.setdefault(pair.location, []).append((pair.first, pair.second))
    told = {f"coherence order of {clean(where)}": chained(pairs) for where, pairs in orders.items()}
    told["Fence-SC order"] = chained([(pair.first, pair.second) for pair in execution.fence_sc])
    return lines + [f"{indent}{what}: {chains}" for what, chains in told.items() if chains]


def chained(pairs: Sequence[tuple[str, str]]) -> str:
    """An order, of which ``pairs`` are the neighbours, in as few chains as it takes."""
    left = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]  # one line may hold several instructions
    chains = []
    while left:
        chain = list(next((p for p in left if p[0] not in {b for _, b in left}), left[0]))
        left.remove((chain[0], chain[1]))
        while (step := next((pair for pair in left if pair[0] == chain[-1]), None)) is not None:
            left.remove(step)
            chain.append(step[1])
        chains.append(" before ".join(chain))
    return ", ".join(chains)


def _effect(access: Access) -> str:
    if access.kind == "W":
        return f"writes {clean(access.location)} = {access.value}"
    sources = " and ".join("its initial value" if s == "initial" else s for s in access.sources)
    return f"reads {clean(access.location)} = {access.value} from {sources}"
