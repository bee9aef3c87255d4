"""Random litmus tests of two or three threads with loops that need not end.

They spin for a flag that may stay as it is, or go round for ever without looking. Among their accesses of two sizes
some stray: ``STRAY`` stands for a store outside every object. ``text(number, zone=True)`` has a store to an object of
its own there, so that a judge that knows nothing of stray accesses can tell whether it is ever executed.
"""

from __future__ import annotations

import random

STRAY = "<stray>"


def text(number: int, zone: bool = False) -> str:
    """The litmus file with this number."""
    rng = random.Random(number)
    threads = [_thread(rng) for _ in range(rng.choice((2, 2, 3)))]
    together = rng.random() < 0.3
    blocks = []
    for i, rows in enumerate(threads):
        store = "st.relaxed.sys.u32 [zone], 1;" if zone else "st.u32 [d+64], 1;"
        body = "\n".join(f"  {row}" for row in rows).replace(STRAY, store)
        blocks.append(f"P{i} @ cta {0 if together else i} {{\n  mov.u64 d, x;\n{body}\n}}")
    objects = "".join(f" .global .u32 {name} = 0;" for name in ("x", "f", "g", *(("zone",) if zone else ())))
    return "\n".join(["PTX endless", f"{{{objects} }}", *blocks, "exists (x == 9)", ""])


def _thread(rng: random.Random) -> list[str]:
    rows: list[str] = []
    for k in range(rng.randint(1, 3)):
        rows += _piece(rng, k)
    return rows


def _piece(rng: random.Random, k: int) -> list[str]:
    kind = rng.random()
    flag = rng.choice("fg")
    strong = rng.choice(("relaxed.gpu", "relaxed.gpu", "relaxed.cta"))
    if kind < 0.3:
        return [_access(rng, k)]
    if kind < 0.5:
        return [f"st.{rng.choice((strong, 'release.gpu'))}.u32 [{flag}], 1;"]
    if kind < 0.75:
        order = rng.choice((strong, "acquire.gpu"))
        return [f"L{k}: ld.{order}.u32 s{k}, [{flag}];", f"setp.eq.u32 p{k}, s{k}, 0;", f"@p{k} bra L{k};"]
    if kind < 0.82:
        return [f"L{k}: bra L{k};"]
    rare = STRAY if rng.random() < 0.5 else _access(rng, k)
    if rng.random() < 0.5:
        rare = f"{rare} M{k}: bra M{k};"
    decided = [f"ld.{strong}.u32 c{k}, [{flag}];", f"setp.eq.u32 q{k}, c{k}, 0;", f"@q{k} bra E{k};"]
    return [*decided, rare, f"E{k}: mov.u32 z, 0;"]


def _access(rng: random.Random, k: int) -> str:
    order = rng.choice(("", "", "relaxed.gpu.", "relaxed.cta."))
    size = rng.choice(("u32", "u32", "u32", "u16"))
    if rng.random() < 0.5:
        return f"ld.{order}{size} {'h' if size == 'u16' else 'w'}{k}, [x];"
    return f"st.{order}{size} [x], {rng.choice((1, 2))};"
