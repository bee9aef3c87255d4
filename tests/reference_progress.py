"""Small programs of stores and spin loops, and whether they may hang if all steps interleave: by all their states.

Nothing here knows of events, models or the engines: a state is where each thread is and what memory holds.
"""

from __future__ import annotations

import random
from itertools import combinations

from msgspec import Struct

LOCATIONS = ("x", "y")


class Do(Struct, frozen=True):
    """One instruction, or one loop around it.

    ``store``, ``add``; ``until`` (spin until the location holds ``value``), ``while`` (spin while it does), ``exch``
    (exchange ``value`` until ``other`` is returned), ``cas`` (until it puts ``value`` for ``other``), ``both`` (a loop
    of two loads, until they read ``value`` there and ``other`` in the other location), ``counted`` (``until`` with a
    counter of rounds).
    """

    kind: str
    at: int
    value: int = 0
    other: int = 0


def random_program(rng: random.Random) -> tuple[tuple[Do, ...], ...]:
    """A program of two or three threads, of which about half can't hang: a spin is for a value that some thread
    stores, as often as not."""
    stores = ("store", "store", "store", "add")
    spins = ("until", "until", "while", "exch", "cas", "both", "counted")
    threads = []
    for _ in range(rng.choice((2, 2, 2, 3))):
        mine = []
        for kind in rng.choice((("s",), ("s", "s"), ("l",), ("l", "s"), ("s", "l"), ("s", "l", "s"), ("l", "l"))):
            name = rng.choice(stores if kind == "s" else spins)
            at, value, other = rng.randrange(2), int(rng.random() < 0.7), rng.randrange(2)
            if name == "while":
                value = 1 - value
            if name in ("exch", "cas"):
                value, other = 1, 0
            mine.append(Do(name, at, value, other))
        threads.append(tuple(mine))
    return tuple(threads)


def as_litmus(program: tuple[tuple[Do, ...], ...], order: str = "relaxed.gpu") -> str:
    """The program as a litmus test, each thread in a CTA of its own."""
    lines = ["PTX progress", "{ .global .u32 x = 0; .global .u32 y = 0; }"]
    for number, thread in enumerate(program):
        lines.append(f"P{number} @ cta {number} {{")
        for i, do in enumerate(thread):
            lines += _text(do, i, order)
        lines.append("  mov.u32 r9, 0;\n}")
    return "\n".join([*lines, "exists (x == 0)", ""])


def _text(do: Do, number: int, order: str) -> list[str]:
    here, there = (f"[{LOCATIONS[a]}]" for a in (do.at, 1 - do.at))
    label = f"L{number}"
    back = f"  @p bra {label};"
    load = f"  ld.{order}.global.u32 r0, {here};"
    match do.kind:
        case "store":
            return [f"  st.{order}.global.u32 {here}, {do.value};"]
        case "add":
            return [f"  atom.{order}.global.add.u32 r0, {here}, 1;"]
        case "until":
            return [f"{label}:", load, f"  setp.ne.u32 p, r0, {do.value};", back]
        case "while":
            return [f"{label}:", load, f"  setp.eq.u32 p, r0, {do.value};", back]
        case "counted":
            return [f"{label}:", load, "  add.u32 r7, r7, 1;", f"  setp.ne.u32 p, r0, {do.value};", back]
        case "exch":
            exch = f"  atom.{order}.global.exch.b32 r0, {here}, {do.value};"
            return [f"{label}:", exch, f"  setp.ne.u32 p, r0, {do.other};", back]
        case "cas":
            cas = f"  atom.{order}.global.cas.b32 r0, {here}, {do.other}, {do.value};"
            return [f"{label}:", cas, f"  setp.ne.u32 p, r0, {do.other};", back]
    second = f"  ld.{order}.global.u32 r1, {there};"
    return [
        f"{label}:", load, f"  setp.ne.u32 p, r0, {do.value};", back,
        second, f"  setp.ne.u32 p, r1, {do.other};", back,
    ]  # fmt: skip


Where = tuple[int, int]
"""The instruction a thread is at, and which of its accesses is next."""

State = tuple[tuple[Where, ...], tuple[int, ...], tuple[bool, ...]]
"""Where each thread is, what memory holds, which threads have begun."""


def _step(do: Do, part: int, memory: tuple[int, ...]) -> tuple[int | None, tuple[int, ...]]:
    """One access: the part that is next (None: the instruction after this one), and memory."""
    held = memory[do.at]

    def put(value: int) -> tuple[int, ...]:
        return tuple(value if a == do.at else v for a, v in enumerate(memory))

    match do.kind:
        case "store":
            return None, put(do.value)
        case "add":
            return None, put(held + 1)
        case "until" | "counted":
            return (None if held == do.value else 0), memory
        case "while":
            return (None if held != do.value else 0), memory
        case "exch":
            return (None if held == do.other else 0), put(do.value)
        case "cas":
            return (None, put(do.value)) if held == do.other else (0, memory)
    if part == 0:
        return (1 if held == do.value else 0), memory
    return (None if memory[1 - do.at] == do.other else 0), memory


def hangs(program: tuple[tuple[Do, ...], ...], fairness: str) -> bool:
    """Whether some state can be reached in which threads go round loops for ever, memory stays as it is, and every
    other thread has ended or need not be scheduled any more."""
    n = len(program)
    start: State = (((0, 0),) * n, (0,) * len(LOCATIONS), (False,) * n)
    seen, stack = {start}, [start]
    while stack:
        state = stack.pop()
        where, memory, begun = state
        live = [t for t in range(n) if where[t][0] < len(program[t])]
        stuck = [t for t in live if _spins(program[t], where[t], memory)]
        if stuck and any(
            set(stopped) | set(stuck) >= set(live)
            and _allowed(fairness, live, stopped, [b or (t in stuck and t not in stopped) for t, b in enumerate(begun)])
            for size in range(len(live))
            for stopped in combinations(live, size)
            if set(stuck) - set(stopped)
        ):
            return True
        for t in live:
            (at, part), following = where[t], list(where)
            after, changed = _step(program[t][at], part, memory)
            following[t] = (at + 1, 0) if after is None else (at, after)
            started = tuple(b or u == t for u, b in enumerate(begun))
            new = (tuple(following), changed, started)
            if new not in seen:
                seen.add(new)
                stack.append(new)
    return False


def _spins(thread: tuple[Do, ...], where: Where, memory: tuple[int, ...]) -> bool:
    """Whether the thread, alone, never gets beyond its instruction and changes nothing."""
    at, part = where
    after: int | None = part
    for _ in range(4):
        assert after is not None
        after, changed = _step(thread[at], after, memory)
        if after is None or changed != memory:
            return False
    return True


def _allowed(fairness: str, live: list[int], stopped: tuple[int, ...], begun: list[bool]) -> bool:
    """Whether a scheduler may leave out the ``stopped`` threads for ever."""
    first = min(live)
    return {
        "fair": not stopped,
        "hsa": first not in stopped,
        "obe": not any(begun[t] for t in stopped),
        "hsa_obe": first not in stopped and not any(begun[t] for t in stopped),
        "lobe": not any(begun[u] for t in stopped for u in range(t, len(begun))),
        "unfair": True,
    }[fairness]
