"""What was seen on a GPU, as text."""

from __future__ import annotations

from ptxmm.hardware.compare import RunResult, SeenState
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail

_WORDS = {
    "violation": (
        "VIOLATION",
        ": a state that the model forbids was seen, and again in a program of its own",
        "red",
    ),
    "suspected": ("suspected", ": a state that the model forbids was seen, but not yet confirmed", "yellow"),
    "seen": ("allowed, seen", "", "green"),
    "unseen": ("allowed, never seen", "", "plain"),
    "forbidden": ("forbidden, never seen", "", "green"),
    "listed": ("every state that was seen is allowed", "", "green"),
    "open": ("nothing can be concluded", "", "yellow"),
}


def text(result: RunResult, style: Style) -> list[str]:
    """A line for each final state with how often it was seen, and what follows."""
    lines = [*head(result), f"GPU {clean(result.gpu)}, {result.placement}"]
    counts = [str(state.count) for state in result.states]
    width = max(map(len, counts), default=0)
    valid = result.instances - result.incomplete
    for state, count in zip(result.states, counts, strict=True):
        rate = f"{state.count / valid:.1e}" if state.count else "never  "
        line = f"{'*' if state.satisfies else ' '} {count:>{width}}  {rate}  {_values(state)}"
        if state.allowed is False:
            line = style.paint(f"{line}  forbidden", "red")
        lines.append(line)
    return lines + conclusions(result, style)


def conclusions(result: RunResult, style: Style) -> list[str]:
    """What follows from the states."""
    lines = [f"Instances {result.instances} in {result.took:.2f} s: {result.rate:.1e} a second"]
    if result.weak is not None:
        lines.append(f"Condition {result.quantifier} ({clean(result.condition or '')}): met {met(result)}")
    if result.sibling is not None:
        times = f"met {result.sibling} times in {result.sibling_instances} instances"
        lines.append(f"Sibling without fences, all orders relaxed: {times}")
    word, more, colour = _WORDS[result.verdict]
    lines.append(style.paint(f"Verdict {word}{more}", colour))
    return lines + tail(result)


def in_short(result: RunResult) -> str:
    """The verdict in few words."""
    return _WORDS[result.verdict][0]


def met(result: RunResult) -> str:
    """In how many instances the condition held; where in none, at what rate at most."""
    if result.weak is None:
        return ""
    bound = f", at most {result.bound:.1e} of them" if result.weak == 0 and result.bound is not None else ""
    return f"{result.weak} times{bound}"


def _values(state: SeenState) -> str:
    pairs = [*state.registers.items(), *state.memory.items()]
    return "  ".join(f"{clean(name)}={value}" for name, value in pairs)


pages = separated(text)
