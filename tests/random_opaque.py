"""Random programs with functions whose results are not worked out: on data that nothing looks at, and sometimes where
something does."""

from __future__ import annotations

import random

_FUNCTIONS = ("ex2.approx.f32 {d}, {a}", "rsqrt.approx.f32 {d}, {a}", "div.approx.f32 {d}, {a}, {b}",
              "fma.rn.f16x2 {d}, {a}, {b}, {a}",
              "add.f16x2 {d}, {a}, {b}", "cvt.rn.bf16x2.f32 {d}, {a}, {b}")  # fmt: skip
_MIXING = ("add.u32 {d}, {a}, {b}", "xor.b32 {d}, {a}, {b}", "add.rn.f32 {d}, {a}, {b}", "mov.u32 {d}, {a}")
_FENCES = ("fence.acq_rel.gpu", "fence.sc.gpu", "fence.acq_rel.cta")


def program(seed: int) -> str:
    """Two or three threads that pass data, made of such functions, and flags; the condition names flags and what was
    read of them, in some programs data as well."""
    rng = random.Random(f"opaque/{seed}")
    strict = rng.random() < 0.6
    threads = [_body(rng, strict) for _ in range(rng.choice((2, 2, 3)))]
    return _program(rng, threads, strict)


def forking(seed: int) -> str:
    """As ``program``, with comparisons of such results: of branches around what only computes, of branches and guards
    that decide what is stored, and of loops."""
    rng = random.Random(f"forking/{seed}")
    threads = [_body(rng, True, 1) for _ in range(2)]
    pure = rng.random() < 0.4
    for lines in rng.sample(threads, rng.choice((1, 1, 2))):
        lines.insert(rng.randint(1, len(lines)), "\n".join(_fork(rng, pure)))
    return _program(rng, [[line for text in lines for line in text.split("\n")] for lines in threads], True)


def _fork(rng: random.Random, pure: bool) -> list[str]:
    compared = rng.choice(("setp.lt.f32 p, c, 0f3F800000", "setp.lt.f32 p, c, 0f3F800000", "setp.lt.u32 p, c, g0",
                           "setp.ge.or.f32 p, c, 0f3F800000, q", "@q setp.lt.f32 p, c, 0f3F800000"))  # fmt: skip
    made = [rng.choice(("ex2.approx.f32 c, g0", "add.f16x2 c, g0, g0")), "setp.eq.u32 q, g0, 1", compared]
    computing = rng.choice(("ex2.approx.f32 g0, g0", "add.u32 g0, g0, 1", "mov.u32 g0, 3"))
    storing = rng.choice(("st.relaxed.gpu.global.u32 [x], 2", "ld.acquire.gpu.global.u32 f0, [y]", "fence.sc.gpu",
                          "st.global.u32 [d], 5", "exit", "mov.u32 f1, 4"))  # fmt: skip
    inside = computing if pure else storing
    match rng.randint(0, 5):
        case 0 if inside != "fence.sc.gpu":
            return [*made, f"@p {inside}"]
        case 1:
            return [*made, "@!p bra AWAY", inside, "bra JOIN", "AWAY:", computing, "JOIN:"]
        case 2 if not pure:
            return ["AGAIN:", "ld.relaxed.gpu.global.u32 g0, [d]", *made, "@p bra AGAIN"]
        case 4:
            flag = rng.choice("xy")
            stores = [f"{guard} st.relaxed.gpu.global.u32 [{flag}], 1" for guard in ("@p", "@q")]
            opposite = "setp.lt.f32 p|q, c, 0f3F800000"
            return ["ld.relaxed.gpu.global.u32 g0, [y]", made[0], opposite, *rng.sample(stores, rng.choice((1, 2)))]
        case 3:
            return [*made, "@p bra AWAY", "@q exit", *made[1:], "AWAY:", made[2], "@p bra JOIN", inside, "JOIN:"]
        case _:
            return [*made, "@p bra AWAY", inside, "AWAY:"]


def _program(rng: random.Random, threads: list[list[str]], strict: bool) -> str:
    flags = [
        f"P{number}:f{n}" for number, lines in enumerate(threads) for n in range(2) if f" f{n}," in " ".join(lines)
    ]
    asked = [rng.choice(["x == 1", "y == 1", *(f"{name} == 1" for name in flags)]) for _ in range(2)]
    if not strict and rng.random() < 0.5:
        asked.append(rng.choice(("d == 0", "e == 0")))
    cta = rng.random() < 0.3
    names = [f"P{i} @ cta {0 if cta else i}" for i in range(len(threads))]
    table = "".join(
        f"{name} {{\n" + "".join(f"  {line}{'' if line.endswith(':') else ';'}\n" for line in lines) + "}\n"
        for name, lines in zip(names, threads, strict=True)
    )
    where = "{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 d = 0; .global .u32 e = 0; }"
    condition = " /\\ ".join(dict.fromkeys(asked))
    return f"PTX opaque\n{where}\n{table}exists ({condition})\n"


def _body(rng: random.Random, strict: bool, fewer: int = 0) -> list[str]:
    lines: list[str] = []
    known = ["g0"]
    lines.append(rng.choice(("ld.relaxed.gpu.global.u32 g0, [d]", "ld.global.u32 g0, [e]", "mov.u32 g0, 7")))
    for _ in range(rng.randint(2, 4) - fewer):
        flag, data, n = rng.choice("xy"), rng.choice("de"), rng.randint(0, 1)
        match rng.randint(0, 8):
            case 0:
                lines.append(
                    f"{rng.choice(('ld.acquire.gpu', 'ld.relaxed.gpu', 'ld.relaxed.cta'))}.global.u32 f{n}, [{flag}]"
                )
            case 1:
                lines.append(
                    f"{rng.choice(('st.release.gpu', 'st.relaxed.gpu', 'st.release.cta'))}.global.u32 [{flag}], 1"
                )
            case 2:
                lines.append(f"{rng.choice(('ld', 'ld.relaxed.gpu'))}.global.u32 g{n}, [{data}]")
                known.append(f"g{n}")
            case 3:
                lines.append(f"{rng.choice(('st', 'st.relaxed.gpu'))}.global.u32 [{data}], {rng.choice(known)}")
            case 4 | 5 | 6:
                text = rng.choice((*_FUNCTIONS, *_FUNCTIONS, *_MIXING))
                lines.append(text.format(d=f"g{n}", a=rng.choice(known), b=rng.choice(known)))
                known.append(f"g{n}")
            case 7:
                lines.append(rng.choice((*_FENCES, f"red.relaxed.gpu.global.add.u32 [{data}], {rng.choice(known)}")))
            case _ if strict:
                lines.append(f"atom.relaxed.gpu.global.add.u32 f{n}, [{flag}], 1")
            case _:
                lines.append(f"st.relaxed.gpu.global.u32 [{flag}], {rng.choice(known)}")
    return lines
