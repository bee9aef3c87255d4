"""Random programs in which the lanes of a warp go round until all are done, and tell each other so by votes
(``test_votes``): some as they should be, some nearly."""

from __future__ import annotations

import random

_FRAME = """PTX t
{{
  .global .u32 lock = {initial};
  .global .u32 f = 0;
  .global .u32 g = 0;
  .global .u32 d = 0;
}}
{threads}
exists (d == 0)
"""


def program(seed: int) -> str:
    """A litmus test of two or three lanes, and perhaps another thread."""
    rng = random.Random(f"votes/{seed}")
    count = 3 if rng.random() < 0.15 else 2
    masks = rng.choice(("activemask", "constant", "constant", "ballot"))
    polarity = rng.random() < 0.7
    kind = rng.choice(("ballot", "ballot", "all", "any", "none"))
    lock = rng.choice(("exch", "exch", "cas", "poll"))
    everywhere = _odd(rng) if rng.random() < 0.4 else {}
    lanes = []
    for lane in range(count):
        odd = _odd(rng) if rng.random() < 0.12 else everywhere
        lanes.append(f"P{lane} @ warp 0, cta 0 {{\n{_lane(rng, lane, count, masks, kind, lock, polarity, odd)}}}")
    if rng.random() < 0.5:
        lanes.append(f"P{count} @ cta 1 {{\n{_other(rng, lock)}}}")
    return _FRAME.format(initial=rng.choice((0, 0, 0, 1)), threads="\n".join(lanes))


def _odd(rng: random.Random) -> dict[str, bool]:
    return {rng.choice(_ODD): True}


_ODD = (
    "weak", "counts", "exits", "leaves", "stores", "post", "pre", "mask", "twice", "value", "meets", "skips", "seen",
    "again", "works", "inner",
)  # fmt: skip


def _lane(
    rng: random.Random, lane: int, count: int, masks: str, kind: str, lock: str, polarity: bool, odd: dict[str, bool]
) -> str:
    every = (1 << count) - 1
    mask = "m" if masks == "activemask" else str(every if "mask" not in odd else rng.choice((1, 3, 7)))
    lines = ["activemask.b32 m;"] if masks == "activemask" else []
    whole = mask
    if masks == "ballot" or (masks == "activemask" and rng.random() < 0.5):
        lines.append(f"vote.sync.ballot.b32 a, 1, {mask};")
        whole = "a"
    if "pre" in odd:
        lines.append(rng.choice((f"vote.sync.ballot.b32 q, 0, {mask};", f"bar.warp.sync {mask};")))
    if "skips" in odd:
        lines.append("ld.relaxed.gpu.u32 z, [f]; setp.eq.u32 k, z, 1; @k bra L5;")
    yes, no = ("1", "0") if kind in ("ballot", "all") else ("0", "1")

    def vote(said: str, back: str) -> str:
        if kind in ("all", "any"):
            guard = "@!w" if kind == "all" else "@w"
            return f"vote.sync.{kind}.pred w, {said}, {mask}; {guard} bra {back};"
        other = whole if kind == "ballot" else "0"
        if polarity:
            return f"vote.sync.ballot.b32 v, {said}, {mask}; setp.ne.b32 w, v, {other}; @w bra {back};"
        return f"vote.sync.ballot.b32 v, {said}, {mask}; setp.eq.b32 w, {other}, v; @!w bra {back};"

    sem = rng.choice(("acquire", "acquire", "relaxed"))
    wanted, where = "0", "lock"
    if lock == "poll":
        where, wanted = ("f", "1") if lane else (rng.choice(("g", "f")), "1")
        attempt = f"ld.{sem}.gpu.u32 r, [{where}];"
    elif lock == "cas":
        attempt = f"atom.{sem}.gpu.global.cas.b32 r, [lock], 0, 1;"
    else:
        attempt = f"atom.{sem}.gpu.global.exch.b32 r, [lock], {2 if 'value' in odd else 1};"
    lines.append("L0:")
    if "weak" in odd:
        lines.append("ld.u32 y, [d];")
    if "again" in odd:
        lines.append("ld.relaxed.gpu.u32 y, [d];")
    if "counts" in odd:
        lines.append("add.u32 n, n, 1;")
    lines.append(attempt)
    if "inner" in odd:
        lines.append("I: ld.relaxed.gpu.u32 i, [g]; setp.eq.u32 k, i, 5; @k bra I;")
    lines.append(f"setp.eq.u32 p, r, {wanted}; @p bra L2;")
    if rng.random() < 0.2:
        lines.append(f"fence.{rng.choice(('acq_rel', 'sc'))}.gpu;")
    if "stores" in odd:
        lines.append("st.relaxed.gpu.u32 [g], 1;")
    if "twice" in odd and lock == "cas":
        lines.append("setp.eq.u32 k, r, 1; @k atom.relaxed.gpu.global.cas.b32 x, [g], 0, 1;")
    if "exits" in odd:
        lines.append("ld.relaxed.gpu.u32 x, [g]; setp.eq.u32 k, x, 1; @k bra L6;")
    if "seen" in odd:
        lines.append("ld.relaxed.gpu.u32 x, [g];")
    if "meets" in odd:
        lines.append(f"bar.warp.sync {mask};")
    lines.append(vote(no, "L0" if "leaves" not in odd else "L7"))
    lines.append("bra L5;")
    if "leaves" in odd:
        lines.append("L7: ld.relaxed.gpu.u32 x, [g]; setp.eq.u32 k, x, 1; @k bra L6; bra L0;")
    lines.append("L2:")
    fence = rng.choice(("fence.acq_rel.gpu;", "", ""))
    work = rng.choice(("ld.u32 c, [d]; add.u32 c, c, 1; st.u32 [d], c;", f"st.u32 [d], {lane + 1};", "ld.u32 c, [d];"))
    lines.append(f"{fence} {work}")
    release = rng.choice(("release", "release", "relaxed"))
    if lock == "poll":
        given = rng.choice(("f", "g"))
        lines.append(f"st.{release}.gpu.u32 [{given}], 1;" if rng.random() < 0.8 else "")
    elif rng.random() < 0.9:
        done = f"atom.{release}.gpu.global.exch.b32 o, [lock], 0;"
        lines.append(done if lock == "exch" or rng.random() < 0.5 else f"st.{release}.gpu.u32 [lock], 0;")
    if rng.random() < 0.15:
        lines.append("bra L6;")
    lines.append("L3:")
    if "works" in odd:
        lines.append("ld.relaxed.gpu.u32 b, [g];")
    lines.append(vote(yes, "L3"))
    lines.append("L5:")
    if "post" in odd:
        lines.append(rng.choice((vote(rng.choice(("0", "1")), "L6"), f"bar.warp.sync {mask};")))
    lines.append(
        rng.choice(("ld.u32 e, [d];", "ld.relaxed.gpu.u32 e, [d];", f"st.relaxed.gpu.u32 [g], {lane + 2};", ""))
    )
    lines.append("L6: mov.u32 h, 1;")
    return "".join(f"  {line}\n" for line in lines if line)


def _other(rng: random.Random, lock: str) -> str:
    release = rng.choice(("release", "release", "relaxed"))
    lines = [rng.choice(("st.u32 [d], 9;", "st.relaxed.gpu.u32 [d], 9;", ""))]
    name, value = ("f", 1) if lock == "poll" else ("lock", 0)
    name = rng.choice((name, name, "g"))
    lines.append(f"st.{release}.gpu.u32 [{name}], {value if name != 'g' else 1};")
    lines.append(rng.choice(("", "ld.u32 e, [d];")))
    return "".join(f"  {line}\n" for line in lines if line)
