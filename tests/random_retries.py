"""Random litmus tests of threads that change a place by compare-and-swap and try again with what they have found.

What ``retries`` of ``program.shared`` makes of such loops must not change any final state. Some are none: they compare
something else, count, have an effect between two attempts, or leave where they fail.
"""

from __future__ import annotations

import random

ORDERS = ("relaxed.gpu", "acquire.gpu", "weak", "relaxed.cta", "relaxed.sys")


def _attempts(rng: random.Random) -> list[str]:
    """A load, and a loop of ``cas``."""
    load = rng.choice(ORDERS[:2] if rng.random() < 0.6 else ORDERS)
    swap = rng.choice(("relaxed.gpu", "acquire.gpu", "acq_rel.gpu", "release.gpu"))
    odd = rng.random()
    register = rng.choice(("r1", "r1", "r2"))
    rows = ["mov.u32 c, 0", f"ld.{load}.u32 r1, [f]".replace(".weak", "")]
    wait = rng.random() < 0.4
    begin = "L: " if rng.random() < 0.7 else ""
    rows += ["L: setp.eq.u32 q, r1, 0", "@q bra X"] if wait else []
    rows.append(("" if wait else "L: ") + f"add.u32 n, r1, {rng.choice((1, 1, 2))}")
    rows.append(f"atom.{swap}.cas.b32 {register}, [{'d' if 0.1 < odd < 0.15 else 'f'}], r1, n")
    if odd < 0.1:
        rows.append("add.u32 c, c, 1")
    compare = "r2" if register == "r2" else "r3"
    if register == "r1":  # the value that was compared is gone
        rows[-1 - (odd < 0.1)] = rows[-1 - (odd < 0.1)].replace("cas.b32 r1", "cas.b32 r3")
    rows.append(f"setp.{'eq' if begin else 'ne'}.u32 p, {compare}, r1")
    rows.append(f"mov.u32 r1, {compare}")
    if 0.2 < odd < 0.25:
        rows.append("st.relaxed.gpu.u32 [d], 2")
    rows += ["@p bra X", "bra L"] if begin else ["@p bra L"]
    rows.append(f"X: {rng.choice(('mov.u32 s, 5', 'add.u32 s, r1, 0', 'mov.u32 s, n', 'mov.u32 s, c'))}")
    return rows


def _access(rng: random.Random, number: int) -> str:
    place = rng.choice("fd")
    order = rng.choice(("", ".relaxed.gpu", ".acquire.gpu", ".release.gpu"))
    if rng.random() < 0.3:
        return f"atom.relaxed.gpu.add.u32 b{number}, [{place}], 1"
    if rng.random() < 0.4 and order != ".release.gpu":
        return f"ld{order}.u32 a{number}, [{place}]"
    return f"st{order.replace('acquire', 'release')}.u32 [{place}], {rng.choice((1, 1, 2))}"


def program(number: int) -> str:
    """The litmus file with this number."""
    rng = random.Random(number)
    threads = [
        [*([_access(rng, 8)] if rng.random() < 0.3 else []), *_attempts(rng), _access(rng, 9)],
        [_access(rng, n) for n in range(rng.choice((2, 3)))],
    ]
    rows = ["PTX retries", "{", f"  .global .u32 f = {rng.choice((0, 1))};", "  .global .u32 d = 0;", "}"]
    for index, body in enumerate(threads):
        rows += [f"P{index} @ cta {index} {{", *(f"  {row};" for row in body), "}"]
    return "\n".join([*rows, "exists (P0:s == 1)"]) + "\n"
