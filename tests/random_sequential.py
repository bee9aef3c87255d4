"""Random kernels whose threads fence by ``fence.sc`` before a barrier behind which one of them gives a flag, as old
barriers of a grid do; most of it right, and some of it not (``test_whole_flags``)."""

from __future__ import annotations

import random

from tests.random_whole import FLAGS_HEAD


class _Cta:
    """What the two threads of a CTA do: lines of both, and of the first one alone."""

    def __init__(self, rng: random.Random, odd: float, name: str) -> None:
        self.rng, self.odd, self.name = rng, odd, name
        self.lines: list[str] = []
        self.labels = 0

    def chance(self) -> bool:
        return self.rng.random() < self.odd

    def alone(self, *lines: str, thread: int = 0) -> None:
        self.labels += 1
        label = f"{self.name}{self.labels}"
        self.lines += [f"@%p{3 + thread} bra {label};", *lines, f"{label}:"]

    def fence(self) -> str:
        sem = "acq_rel" if self.chance() or self.rng.random() < 0.2 else "sc"
        return f"fence.{sem}.{'cta' if self.chance() else self.rng.choice(('gpu', 'gpu', 'sys'))};"

    def fences(self) -> None:
        """Both threads fence, or one of them."""
        if self.chance():
            self.alone(self.fence(), thread=self.rng.randrange(2))
        elif not self.chance():
            self.lines.append(self.fence())

    def barrier(self) -> None:
        if not self.chance():
            self.lines.append("bar.sync 0;")

    def data(self, store: bool, of: int = 0) -> None:
        """Each thread accesses a word ``of`` a CTA, its own one or that of the other thread."""
        word = f"[{self.rng.choice(('%d5', '%d5', '%d6'))}+{8 * of}]"
        text = f"st.global.u32 {word}, 1;" if store else f"ld.global.u32 %r5, {word};"
        if self.rng.random() < 0.25:
            self.alone(text, thread=self.rng.randrange(2))
        else:
            self.lines.append(text)

    def signal(self, flag: int, counts: bool) -> None:
        sem = self.rng.choice(("relaxed", "relaxed", "relaxed", "release"))
        scope = "cta" if self.chance() else "gpu"
        if counts:
            text = f"red.{sem}.{scope}.global.add.u32 [%d2+{4 * flag}], 1;"
        elif self.rng.random() < 0.3:
            text = f"st.volatile.global.u32 [%d2+{4 * flag}], 1;"
        else:
            text = f"st.{sem}.{scope}.global.u32 [%d2+{4 * flag}], 1;"
        before = [self.fence()] if self.rng.random() < 0.15 else []
        self.alone(*before, text)

    def wait(self, flag: int, value: int) -> None:
        load = self.rng.choice(("relaxed.gpu", "relaxed.gpu", "volatile", "acquire.gpu"))
        value = value - 1 if self.chance() and value > 1 else value
        label = f"W{self.name}{flag}"
        loop = [f"{label}:", f"ld.{load}.global.u32 %r7, [%d2+{4 * flag}];", f"setp.lt.u32 %p1, %r7, {value};"]
        after = [] if self.chance() else [self.fence()]
        if self.rng.random() < 0.2:  # every thread waits
            self.lines += [*loop, f"@%p1 bra {label};", *after]
        else:
            self.alone(*loop, f"@%p1 bra {label};", *after)


def sequential(seed: int) -> str:
    """CTAs that hand on words, or meet at a counter."""
    rng = random.Random(f"sequential/{seed}")
    odd = rng.choice((0.0, 0.0, 0.08, 0.2))
    grid = rng.choice((2, 2, 3))
    ctas = [_Cta(rng, odd, "ABC"[cta]) for cta in range(grid)]
    if rng.random() < 0.5:  # all meet
        grid = 2
        ctas = ctas[:2]
        for number, cta in enumerate(ctas):
            cta.data(rng.random() < 0.7, number)
            cta.fences()
            cta.barrier()
            cta.signal(0, counts=True)
            cta.wait(0, 2)
            cta.barrier()
            cta.data(rng.random() < 0.2, 1 - number)
    else:
        for number, cta in enumerate(ctas):
            if number:
                cta.wait(number - 1, 1)
                cta.barrier()
                cta.data(False)
            if number + 1 < grid:
                cta.data(number == 0)
                cta.fences()
                cta.barrier()
                cta.signal(number, counts=False)
    body = ["and.b32 %r8, %r4, 1;", "setp.ne.u32 %p3, %r8, 0;", "setp.ne.u32 %p4, %r8, 1;"]
    body += ["mul.wide.u32 %d7, %r8, 4;", "add.u64 %d5, %d1, %d7;", "xor.b64 %d7, %d7, 4;", "add.u64 %d6, %d1, %d7;"]
    for number, cta in enumerate(ctas):
        body += [f"setp.ne.u32 %p2, %r2, {number};", f"@%p2 bra T{number};", *cta.lines, f"T{number}:"]
    text = "\n".join(line if line.endswith(":") else f"    {line}" for line in body)
    return FLAGS_HEAD.format(grid=grid, block=2) + text + "\n    ret;\n}\n"
