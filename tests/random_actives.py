"""Random kernels in which lanes exchange what the active ones say, and operate on an mbarrier before and after, for
whole launches (``test_whole_actives``)."""

from __future__ import annotations

import random

HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = {lanes}
// ptxmm: threads = "all"
// ptxmm: assume = ["active-together"]
// ptxmm: args = ["d"]
// ptxmm: [objects]
// ptxmm: d = {{ type = "u32", count = 4 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 pd)
{{
    .reg .pred %p<9>, %q<3>;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    .shared .align 8 .b64 b;
    .shared .align 4 .u32 n;
    ld.param.u64 %d1, [pd];
    mov.u32 %r1, %tid.x;
    mov.u32 %r10, %lanemask_lt;
    setp.eq.u32 %q0, %r1, 0;
    setp.eq.u32 %q1, %r1, 1;
    setp.eq.u32 %q2, %r1, 2;
    @%q0 mbarrier.init.shared.b64 [b], {count};
    @%q0 st.shared.u32 [n], 0;
    bar.sync 0;
"""
"""A launch of one warp; ``q0`` to ``q2`` say which lane a thread is."""
ACTIVE = "activemask.b32 %r4;"


def actives(seed: int) -> tuple[str, str]:
    """A kernel of two or three lanes, and the same with the masks of all lanes that come to an ``activemask``."""
    rng = random.Random(seed)
    lanes = rng.choice((2, 2, 3))
    steps = [_step(rng, lanes, number) for number in range(rng.choice((3, 4, 5)))]
    steps.insert(rng.randrange(len(steps) + 1), _exchange(rng, lanes, 8))
    if rng.random() < 0.4:
        steps.append(_exchange(rng, lanes, 9, rng.choice(("mbarrier.inval.shared.b64 [b];", _access(rng)))))
    text = HEAD.format(lanes=lanes, count=rng.choice((1, 1, 2))) + "    ".join(f"{step}\n" for step in steps)
    text += "    ret;\n}\n"
    given = text
    for mask in range(1, 1 << lanes):
        given = given.replace(f"{ACTIVE} // {mask}\n", f"mov.u32 %r4, {mask};\n")
    return text, given


def _access(rng: random.Random) -> str:
    place = 4 * rng.randrange(2)
    return rng.choice((f"st.global.u32 [%d1+{place}], 1;", f"ld.global.u32 %r3, [%d1+{place}];"))


def _step(rng: random.Random, lanes: int, number: int) -> str:
    lane = rng.randrange(lanes)
    match rng.choice(("access", "access", "arrive", "arrive", "wait", "sync", "exchange")):
        case "access":
            return f"@%q{lane} {_access(rng)}"
        case "arrive":
            order = rng.choice(("", ".release.cta", ".relaxed.cta")[:2])
            return f"@%q{lane} mbarrier.arrive{order}.shared.b64 %d8, [b];"
        case "wait":
            wait = f"mbarrier.try_wait.parity.shared.b64 %p7, [b], {rng.choice((0, 0, 1))};"
            return f"@!%q{lane} bra V{number}; W{number}: {wait} @!%p7 bra W{number}; V{number}:"
        case "sync":
            return f"bar.warp.sync {(1 << lanes) - 1};"
        case _:
            return _exchange(rng, lanes, number)


def _exchange(rng: random.Random, lanes: int, number: int, last: str = "") -> str:
    """The lowest lane of each group adds the size of it to a counter; the last one may do more."""
    apart = rng.randrange(lanes) if lanes > 2 and rng.random() < 0.4 else None
    mask = (1 << lanes) - 1 & ~(0 if apart is None else 1 << apart)
    around = ("", "") if apart is None else (f"@%q{apart} bra X{number}; ", f" X{number}:")
    said = rng.choice(("7", "7", "%r1"))
    order = rng.choice(("relaxed", "acq_rel", "acq_rel"))
    lead = "and.b32 %r6, %r5, %r10; setp.eq.u32 %p5, %r6, 0; popc.b32 %r7, %r5;"
    adds = f"@%p5 atom.{order}.cta.shared.add.u32 %r8, [n], %r7;"
    ends = f"@!%p5 bra Y{number}; add.u32 %r9, %r8, %r7; setp.ne.u32 %p6, %r9, {lanes}; @%p6 bra Y{number}; {last} "
    group = f"{ACTIVE} // {mask}\nmatch.any.sync.b32 %r5, {said}, %r4; {lead} {adds}"
    return f"{around[0]}{group} {ends + f'Y{number}:' if last else ''}{around[1]}"
