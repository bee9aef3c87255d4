"""Random tests that are only read: how instructions name bytes, and what two ways of a branch have alike."""

from __future__ import annotations

import random

_OBJECTS = """
  .global .align 16 .b8 g[32]; .global .align 16 .u32 h[8] = {0}; .global .b64 c = 0; .global .align 128 .b8 w[128];
  .shared .align 16 .b8 s[32] @ cta 0 = {0}; .shared .b64 b @ cta 0 = mbarrier(1); .shared .b64 d @ cta 0 = 0;
  .shared .b64 e @ cta 0 = 0; .shared .u32 f @ cta 0 = 0; y @ generic aliases h;
"""
_SIZES = (8, 16, 32, 64)


def accesses(number: int) -> str:
    """Threads that name variables themselves, by a register that names one, or by one that may name any."""
    rng = random.Random(f"accesses/{number}")
    threads, initial = [], []
    for t in range(rng.choice((1, 2, 2, 3))):
        lines = []
        for i in range(rng.choice((1, 1, 2, 3))):
            name, bits = rng.choice(("g", "h", "s", "s", "y", "c", "d", "e", "b", "w")), rng.choice(_SIZES)
            known = f"r{i}"
            if rng.random() < 0.4:
                lines.append(f"mov.u64 {known}, {name}")
                if rng.random() < 0.5:
                    lines.append(f"add.u64 {known}b, {known}, {rng.choice((0, 4, 8))}")
                    known += "b"
                if rng.random() < 0.4:
                    lines.append(f"add.u64 {known}, {known}, 0")  # with two instructions that write it
            elif rng.random() < 0.2:
                initial.append(f" P{t}:{known} = {name};")
            else:
                known = name
            space = ".shared" if name in ("s", "d", "e", "b") else ".global"
            space = rng.choice((space, space, ""))
            barrier = "" if space == ".global" else space
            at = f"[{known}+{rng.choice((0, 0, 8)) if known == name else 0}]"
            lines.append(rng.choice((
                f"ld{space}.u{bits} v{bits}, {at}", f"st{space}.u{bits} {at}, 1",
                f"ld{space}.v2.u32 {{a, a2}}, {at}", f"atom{space}.add.u32 a, {at}, 1",
                f"cp.async.ca.shared.global [s+{rng.choice((0, 8))}], [g], 8", f"discard.global.L2 [{known}], 128",
                f"mbarrier.arrive{barrier}.b64 _, [{known}]", f"mbarrier.init{barrier}.b64 [{known}], 1",
                f"mbarrier.arrive{barrier}.b64 t, [{known}]; mov.b64 k, t", f"mbarrier.arrive.b64 t, [{known}]",
                "mbarrier.arrive.shared.b64 t, [b]; mov.b64 k, t; add.u64 k, k, 1",
                f"mbarrier.arrive{barrier}.b64 t, [{known}]; mbarrier.test_wait.shared.b64 p, [b], t",
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b]",
                "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [h], [s], 16",
            )))  # fmt: skip
        threads.append(f"P{t} @ cta 0 {{ {'; '.join(lines)}; }}")
    return f"PTX t\n{{{_OBJECTS}{''.join(initial)}}}\n" + "\n".join(threads) + "\n"


def ways(number: int) -> str:
    """A thread of moves, comparisons and stores under guards, and perhaps a branch."""
    rng = random.Random(f"ways/{number}")
    register, predicate = ("r0", "r1", "r2"), ("p", "p", "q")

    def step() -> str:
        guard = f"@{rng.choice(('', '!'))}{rng.choice(predicate)} " if rng.random() < 0.6 else ""
        value, r = rng.choice((*register, "0", "1")), rng.choice(register)
        kind = rng.random()
        if kind < 0.25:
            return f"{guard}mov.u32 {r}, {value}"
        if kind < 0.35:
            return f"setp.{rng.choice(('eq', 'ne', 'lt', 'ge', 'gt'))}.u32 q, {rng.choice(('r0', 'r1'))}, {value}"
        if kind < 0.4:
            return f"{guard}ld.global.u32 {r}, [x]"
        if kind < 0.5:
            return rng.choice(("not.pred q, p", f"add.u32 {r}, {r}, 1", f"xor.b32 {r}, {r}, {r}"))
        return f"{guard}st.global.u32 [{rng.choice('xxy')}], {rng.choice(('r1', 'r2', '1'))}"

    lines = ["ld.global.u32 r0, [x]", "ld.global.u32 r1, [y]", "mov.u32 r2, r1", "setp.eq.u32 p, r0, 1"]
    lines += [f"setp.{rng.choice(('eq', 'ne', 'ne', 'lt'))}.u32 q, r0, 1", *(step() for _ in range(rng.randrange(4)))]
    if rng.random() < 0.6:
        arms = [[step() for _ in range(rng.randrange(1, 3))] for _ in range(2)]
        if rng.random() < 0.5:
            arms[1] = list(arms[0])
        lines += ["@p bra A", *arms[0], "bra B", f"A: {arms[1][0]}", *arms[1][1:], "B: mov.u32 r3, r2"]
    return f"PTX t\n{{ .global .u32 x = 0; .global .u32 y = 0; }}\nP0 @ cta 0 {{ {'; '.join(lines)}; }}\n"
