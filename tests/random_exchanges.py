"""Random programs: barriers with reductions and exchanges between the lanes of a warp."""

from __future__ import annotations

import random

_HEADER = "PTX exchanges\n{ .global .u32 x = 0; .global .u32 y = 0; }\n"


def program(seed: int) -> str:
    """A program of 2 or 3 threads; the first two are often of one warp and mostly do the same."""
    rng = random.Random(f"exchanges/{seed}")
    count = rng.choice((2, 2, 3))
    warp, alike, common = rng.random() < 0.75, rng.random() < 0.7, rng.getrandbits(32)
    threads = []
    for t in range(count):
        body = [f"mov.u32 v{t}, {rng.choice((0, 1))}", f"mov.u32 w{t}, 0", "setp.eq.u32 q, 0, 1", "setp.eq.u32 p, 0, 1"]
        same = random.Random(common) if alike and t < 2 else None
        for _ in range(rng.randint(1, 4)):
            body.append(_instruction(same or rng, t))
            if same is not None and rng.random() < 0.4:
                body.append(_own(rng, t))
        place = f"cta {0 if t < 2 else rng.choice((0, 1))}" + (", warp 0" if warp and t < 2 else "")
        threads.append(f"P{t} @ {place} {{\n" + "".join(f"  {line};\n" for line in body) + "}\n")
    registers = " /\\ ".join(f"P{t}:v{t} == 0 /\\ P{t}:w{t} == 0 /\\ P{t}:q == 0" for t in range(count))
    return _HEADER + "".join(threads) + f"exists (x == 0 /\\ y == 0 /\\ {registers})\n"


def _own(rng: random.Random, t: int) -> str:
    """What only one of two threads does that are otherwise alike."""
    if rng.random() < 0.3:
        return _instruction(rng, t)
    return rng.choice((f"st.relaxed.gpu.global.u32 [x], w{t}", f"ld.relaxed.gpu.global.u32 v{t}, [y]"))


def _instruction(rng: random.Random, t: int) -> str:
    guard = rng.choice(("", "", "", "@q ", "@!q "))
    value = rng.choice((f"v{t}", f"v{t}", f"w{t}"))
    mask = rng.choice((3, 3, 3, 3, 1, 2, 7))
    vote = rng.choice(("q", "!q"))
    roll = rng.random()
    if roll < 0.25:
        return f"ld.relaxed.gpu.global.u32 v{t}, [{rng.choice('xy')}]; setp.ne.u32 q, v{t}, {rng.choice((0, 0, 1))}"
    if roll < 0.45:
        return f"{guard}st.relaxed.gpu.global.u32 [{rng.choice('xy')}], {rng.choice((value, value, 1, 2))}"
    if roll < 0.54:
        return rng.choice(("fence.sc.gpu", "barrier.sync 0", f"bar.warp.sync {mask}", f"add.u32 v{t}, v{t}, 1"))
    if roll < 0.64:
        return f"{guard}barrier.red.popc.u32 v{t}, {rng.choice((0, 0, 0, 1))}, {vote}"
    if roll < 0.7:
        return f"{guard}barrier.red.{rng.choice(('and', 'or'))}.pred q, 0, {vote}"
    if roll < 0.82:
        mode, lane = rng.choice(("idx", "idx", "bfly", "up", "down")), rng.choice((0, 0, 1, 1, 1, 2, f"v{t}"))
        into = f"{rng.choice((f'v{t}', f'w{t}'))}|{rng.choice('qp')}"
        return f"{guard}shfl.sync.{mode}.b32 {into}, {value}, {lane}, {rng.choice((31, 31, 0))}, {mask}"
    if roll < 0.88:
        return f"{guard}vote.sync.{rng.choice(('any', 'all', 'uni'))}.pred q, {vote}, {mask}"
    if roll < 0.94:
        return f"redux.sync.{rng.choice(('add', 'min', 'max'))}.{rng.choice(('u32', 's32'))} w{t}, {value}, {mask}"
    return rng.choice(
        (
            f"vote.sync.ballot.b32 w{t}, q, {mask}",
            f"match.any.sync.b32 w{t}, {value}, {mask}",
            f"match.all.sync.b32 w{t}|q, {value}, {mask}",
            f"elect.sync w{t}|q, {mask}",
            f"activemask.b32 w{t}",
        )
    )
