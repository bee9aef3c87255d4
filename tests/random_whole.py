"""Random kernels whose threads synchronize by barriers of their CTA and warp, for whole launches (``test_whole``)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise

Maker = Callable[[int], str]
Ordered = Callable[[int, int], str]
"""A maker whose second number is that of an order of the text; 0: thread after thread."""

_SIZES = {1: "u8", 2: "u16", 4: "u32"}
_HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: block = {block}
// ptxmm: threads = "{threads}"
// ptxmm: args = ["g"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 4 }}
// ptxmm: s = {{ init = 0 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<9>;
    .reg .b16 %h<9>;
    .reg .b32 %r<9>;
    .reg .b64 %d<9>;
    .shared .align 16 .b8 s[16];
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %d2, %r1, 4;
    mov.u64 %d3, s;
    add.u64 %d4, %d3, %d2;
    add.u64 %d5, %d1, %d2;
    mov.u32 %r3, 1;
    mov.b32 %r4, 2;
    st.shared.u32 [%d4], %r3;
"""


class _Body:
    """The statements of a kernel for ``block`` threads a CTA."""

    def __init__(self, rng: random.Random, block: int, grid: int) -> None:
        self.rng, self.block, self.grid = rng, block, grid
        self.lines: list[str] = []
        self.labels = 0

    def guard(self) -> str:
        """A predicate on the number of the thread or of the CTA, or none."""
        rng = self.rng
        if rng.random() < 0.25:
            return ""
        register, most = ("%r1", self.block) if self.grid == 1 or rng.random() < 0.7 else ("%r2", self.grid)
        number = rng.randrange(most)
        self.lines.append(f"    setp.{rng.choice(('eq', 'ne', 'lt', 'gt'))}.u32 %p1, {register}, {number};")
        return rng.choice(("@%p1 ", "@!%p1 "))

    def access(self) -> None:
        rng, guard = self.rng, self.guard()
        space = rng.choice(("shared", "shared", "shared", "global"))
        size = rng.choice((4, 4, 4, 2, 1))
        base = rng.choice(("%d3", "%d4")) if space == "shared" else rng.choice(("%d1", "%d5"))
        own = base in ("%d4", "%d5")
        offset = 0 if own else rng.randrange(0, 16, size)
        register = "%h2" if size == 1 else "%h1" if size == 2 else "%r3"
        if rng.random() < 0.15:
            scope = rng.choice(("cta", "gpu"))
            self.lines.append(
                f"    {guard}red.relaxed.{scope}.{space}.add.u32 [{base}+{0 if own else offset // 4 * 4}], 1;"
            )
        elif rng.random() < 0.5:
            self.lines.append(f"    {guard}st.{space}.{_SIZES[size]} [{base}+{offset}], {register};")
        else:
            self.lines.append(f"    {guard}ld.{space}.{_SIZES[size]} {register}, [{base}+{offset}];")

    def meeting(self) -> None:
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 5:
            self.lines.append("    bar.sync 0;")
        elif kind < 6:
            self.lines.append(f"    barrier.sync {rng.randrange(2)};")
        elif kind < 8:
            mask = (1 << self.block) - 1 if rng.random() < 0.7 else rng.randrange(1, 1 << self.block)
            lanes = [lane for lane in range(self.block) if mask >> lane & 1]
            if len(lanes) < self.block:
                self.apart(lanes, [f"    bar.warp.sync {mask};"])
            else:
                self.lines.append(f"    bar.warp.sync {mask};")
        elif kind < 9:
            mode = rng.choice(("idx", "up", "down", "bfly"))
            clamp = 0 if mode == "up" else 31
            number = rng.randrange(self.block)
            self.lines.append(f"    shfl.sync.{mode}.b32 %r4|%p2, %r4, {number}, {clamp}, {(1 << self.block) - 1};")
        else:
            self.lines.append("    bar.red.popc.u32 %r4, 0, %p1;")

    def apart(self, lanes: list[int], lines: list[str]) -> None:
        """``lines`` for some threads of a CTA."""
        self.labels += 1
        self.lines.append("    mov.b32 %r5, 0;")
        for lane in lanes:
            self.lines += [f"    setp.eq.u32 %p3, %r1, {lane};", "    @%p3 mov.b32 %r5, 1;"]
        self.lines += ["    setp.eq.u32 %p3, %r5, 0;", f"    @%p3 bra L{self.labels};", *lines, f"L{self.labels}:"]

    def branch(self) -> None:
        """Some steps for some of the threads; a barrier in them may be one that others do not come to."""
        outer, self.lines = self.lines, []
        for _ in range(self.rng.randrange(1, 3)):
            self.meeting() if self.rng.random() < 0.25 else self.access()
        inner, self.lines = self.lines, outer
        lanes = [lane for lane in range(self.block) if self.rng.random() < 0.5]
        self.apart(lanes, inner)


def kernel(seed: int) -> str:
    """A module with its launch."""
    rng = random.Random(f"whole/{seed}")
    block, grid = rng.choice((2, 2, 3, 4)), rng.choice((1, 1, 1, 2))
    body = _Body(rng, block, grid)
    body.lines.append("    setp.eq.u32 %p1, %r1, 0;")
    for _ in range(rng.randrange(3, 9)):
        choice = rng.random()
        if choice < 0.5:
            body.access()
        elif choice < 0.9:
            body.meeting()
        else:
            body.branch()
    return _HEAD.format(block=block, grid=grid, threads="all") + "\n".join(body.lines) + "\n    ret;\n}\n"


def _handed_on(rng: random.Random, count: int) -> list[tuple[list[int], str]]:
    """A barrier that one warp only arrives at and another one waits at, or that all wait at."""
    if rng.random() < 0.4:
        return [(list(range(count)), f"barrier.sync 0, {32 * count};")]
    one, other = rng.sample(range(count), 2)
    name = rng.choice((1, 1, 2))
    return [([one], f"barrier.arrive {name}, 64;"), ([other], f"barrier.sync {name}, 64;")]


def _at_random(rng: random.Random, count: int) -> list[tuple[list[int], str]]:
    kind = rng.choice(("sync", "sync", "arrive"))
    number = 32 * rng.randrange(1 if kind == "sync" else 2, count + 1)
    who = [warp for warp in range(count) if rng.random() < 0.7]
    return [(who, f"barrier.{kind} {rng.randrange(2)}, {number};")]


def _accessed(rng: random.Random, count: int) -> list[tuple[list[int], str]]:
    where = f"[%d3+{rng.randrange(0, 8, 4)}]"
    access = f"st.shared.u32 {where}, %r3;" if rng.random() < 0.5 else f"ld.shared.u32 %r4, {where};"
    return [([rng.randrange(count)], f"@%p5 {access}")]


def _in_turn(steps: list[tuple[list[int], str]]) -> Iterator[str]:
    """Every warp comes by all steps, and does those that are its own."""
    for number, (who, step) in enumerate(steps):
        yield "    mov.b32 %r5, 0;"
        for warp in who:
            yield from (f"    setp.eq.u32 %p3, %r6, {warp};", "    @%p3 mov.b32 %r5, 1;")
        yield from ("    setp.eq.u32 %p3, %r5, 0;", f"    @%p3 bra L{number};", f"    {step}", f"L{number}:")


def _each_apart(rng: random.Random, steps: list[tuple[list[int], str]], count: int) -> Iterator[str]:
    """Each warp has its own text, so that one may be far ahead of another."""
    for warp in rng.sample(range(count), count):
        yield from (f"    setp.ne.u32 %p3, %r6, {warp};", f"    @%p3 bra L{warp};")
        yield from (f"    {step}" for who, step in steps if warp in who)
        yield from ("    bra E;", f"L{warp}:")
    yield "E:"


def warps(seed: int) -> str:
    """The same with named barriers for some of two or three warps, of which lane 0 alone accesses memory."""
    rng = random.Random(f"whole warps/{seed}")
    count = rng.choice((2, 2, 3))
    lines = ["    shr.u32 %r6, %r1, 5;", "    and.b32 %r7, %r1, 31;", "    setp.eq.u32 %p5, %r7, 0;"]
    steps: list[tuple[list[int], str]] = []
    odd = 0.25 if rng.random() < 0.4 else 0.0
    for _ in range(rng.randrange(3, 9)):
        choice = rng.random()
        kind = _accessed if choice < 0.5 else _at_random if choice < 0.5 + odd else _handed_on
        steps += kind(rng, count)
    lines += _in_turn(steps) if rng.random() < 0.5 else _each_apart(rng, steps, count)
    head = _HEAD.format(block=32 * count, grid=1, threads="lane 0").replace("    st.shared.u32 [%d4], %r3;\n", "")
    head = head.replace(".b8 s[16]", ".b8 s[8]")
    return (
        head
        + "    setp.eq.u32 %p5, %r1, 0;\n    @%p5 st.shared.u32 [%d3], %r3;\n"
        + "\n".join(lines)
        + "\n    ret;\n}\n"
    )


FLAGS_HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: block = {block}
// ptxmm: threads = "all"
// ptxmm: args = ["g", "f"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 4 }}
// ptxmm: f = {{ type = "u32", count = 2 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 p, .param .u64 q)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<30>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [p];
    ld.param.u64 %d2, [q];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
"""


def scattered(blocks: list[list[str]], register: str, delay: str, order: int) -> list[str]:
    """What each thread does, by its number in ``register``, in pieces that stand anywhere in the text, some of which
    begin with a ``delay``: who is first in an execution by the order of the text is another one each time."""
    rng = random.Random(f"scattered/{order}")
    lines: list[str] = []
    pieces: list[list[str]] = []
    for thread, block in enumerate(blocks):
        cuts = rng.sample(range(1, len(block)), min(len(block) - 1, rng.choice((0, 1, 2, 4)))) if block else []
        bounds = [0, *sorted(cuts), len(block)]
        for number, (start, end) in enumerate(pairwise(bounds)):
            label = f"C{thread}x{number}"
            wait = [f"mov.u32 {delay}, {rng.randrange(1, 4)};", f"{label}d:", f"sub.u32 {delay}, {delay}, 1;"]
            wait += [f"setp.ne.u32 %p8, {delay}, 0;", f"@%p8 bra {label}d;"]
            then = f"bra C{thread}x{number + 1};" if end < len(block) else "bra CE;"
            pieces.append([f"{label}:", *(wait if rng.random() < 0.2 else []), *block[start:end], then])
        lines += [f"setp.eq.u32 %p7, {register}, {thread};", f"@%p7 bra C{thread}x0;"]
    rng.shuffle(pieces)
    return [*lines, "bra CE;", *(line for piece in pieces for line in piece), "CE:"]


class _Flags:
    """Threads that hand data on by flags and counters; most of it right, and some of it not."""

    def __init__(self, rng: random.Random, threads: int, odd: float, order: int) -> None:
        self.rng, self.threads, self.odd, self.order = rng, threads, odd, order
        self.lines: list[list[str]] = [[] for _ in range(threads)]
        self.labels = 0

    def scope(self) -> str:
        return self.rng.choice(("cta", "cluster")) if self.rng.random() < self.odd else self.rng.choice(("gpu", "sys"))

    def fence(self, sem: str = "acq_rel") -> str:
        sem = "sc" if self.rng.random() < 0.2 else sem
        return f"fence.{sem}.{self.scope()};"

    def data(self, thread: int, cell: int, store: bool) -> None:
        text = f"st.global.u32 [%d1+{4 * cell}], 1;" if store else f"ld.global.u32 %r5, [%d1+{4 * cell}];"
        self.lines[thread].append(text)

    def signal(self, thread: int, flag: int, value: int, counts: bool) -> None:
        """Write a flag, or add to a counter."""
        rng, scope, out = self.rng, self.scope(), self.lines[thread]
        releases = rng.random() < 0.5
        if not releases and rng.random() >= self.odd:
            out.append(self.fence())
        sem = "release" if releases else "relaxed"
        if counts:
            name = "red" if rng.random() < 0.6 else "atom"
            first = "%r6, " if name == "atom" else ""
            out.append(f"{name}.{sem}.{scope}.global.add.u32 {first}[%d2+{4 * flag}], {value};")
        elif not releases and rng.random() < 0.2:
            out.append(f"st.volatile.global.u32 [%d2+{4 * flag}], {value};")
        elif rng.random() < 0.15:
            out.append(f"atom.{sem}.{scope}.global.exch.b32 %r6, [%d2+{4 * flag}], {value};")
        else:
            out.append(f"st.{sem}.{scope}.global.u32 [%d2+{4 * flag}], {value};")

    def wait(self, thread: int, flag: int, value: int) -> None:
        """Read a flag until it has a value."""
        rng, out = self.rng, self.lines[thread]
        self.labels += 1
        acquires = rng.random() < 0.5
        if rng.random() < 0.15:
            load = f"ld.volatile.global.u32 %r7, [%d2+{4 * flag}];"
            acquires = False
        else:
            load = f"ld.{'acquire' if acquires else 'relaxed'}.{self.scope()}.global.u32 %r7, [%d2+{4 * flag}];"
        other, both = load, acquires
        if rng.random() < self.odd:
            both = rng.random() < 0.5
            other = f"ld.{'acquire' if both else 'relaxed'}.gpu.global.u32 %r7, [%d2+{4 * flag}];"
        test = f"setp.{rng.choice(('lt', 'lt', 'ne'))}.u32 %p1, %r7, {value};"
        if rng.random() < self.odd / 2:
            out += [load]
        elif rng.random() < 0.3:
            out += [load, test, f"@!%p1 bra D{self.labels};", f"W{self.labels}:", other, test]
            out += [f"@%p1 bra W{self.labels};", f"D{self.labels}:"]
        else:
            out += [f"W{self.labels}:", load, test, f"@%p1 bra W{self.labels};"]
        if not (acquires and both) and rng.random() >= self.odd:
            out.append(self.fence())

    def text(self) -> str:
        lines = []
        for thread, own in enumerate(self.lines):
            lines += [f"setp.ne.u32 %p2, %r4, {thread};", f"@%p2 bra T{thread};", *own, f"T{thread}:"]
        if self.order:
            lines = scattered(self.lines, "%r4", "%r28", self.order)
        return "\n".join(line if line.endswith(":") else f"    {line}" for line in lines)


def flags(seed: int, order: int = 0) -> str:
    """Threads of several CTAs that hand data on by flags, counters and fences."""
    rng = random.Random(f"whole flags/{seed}")
    grid, block = rng.choice(((2, 1), (2, 1), (3, 1), (2, 2), (1, 2), (1, 3)))
    threads = grid * block
    body = _Flags(rng, threads, rng.choice((0.0, 0.0, 0.1, 0.3)), order)
    for flag in range(rng.choice((1, 1, 2))):
        writers = rng.sample(range(threads), rng.choice((1, 1, 1, 2, min(3, threads))) if threads > 1 else 1)
        readers = [t for t in range(threads) if t not in writers] or [writers.pop()]
        counts = len(writers) > 1 and rng.random() < 0.8
        total = 0
        for number, writer in enumerate(writers):
            cell = 2 * flag + number % 2
            body.data(writer, cell, True)
            step = 2 if counts and rng.random() < body.odd else 1
            total = total + step if counts else 1
            body.signal(writer, flag, step, counts)
            if rng.random() < 0.2 + body.odd:
                body.data(writer, rng.choice((cell, 1 - flag)), rng.random() < 0.5)
            if not counts and rng.random() < 0.2:
                body.signal(writer, flag, 2, False)
        wanted = total + (rng.choice((-1, 1)) if total > 1 and rng.random() < body.odd else 0)
        for reader in rng.sample(readers, rng.randrange(1, len(readers) + 1)):
            body.wait(reader, flag, wanted)
            for number in range(min(len(writers), 2)):
                body.data(reader, 2 * flag + number, rng.random() < 0.3)
            if rng.random() < 0.15:
                body.signal(reader, rng.randrange(2), rng.randrange(3), False)
    return FLAGS_HEAD.format(grid=grid, block=block) + body.text() + "\n    ret;\n}\n"


def counters(seed: int, order: int = 0) -> str:
    """Threads that count themselves: the last one goes on, or all wait for each other, once or twice."""
    rng = random.Random(f"whole counters/{seed}")
    grid, block = rng.choice(((2, 1), (2, 1), (3, 1), (1, 2), (1, 3)))
    threads = grid * block
    body = _Flags(rng, threads, rng.choice((0.0, 0.0, 0.1, 0.3)), order)
    kind = rng.choice(("last", "last", "all", "sense", "ticket"))
    rounds = 1 if kind in ("last", "ticket") or rng.random() < 0.6 else 2
    for thread in range(threads):
        out = body.lines[thread]
        for turn in range(rounds):
            body.data(thread, thread, True)
            _counted(body, thread, kind, turn)
            if kind != "last" or rng.random() < 0.3:
                body.data(thread, rng.randrange(threads), rng.random() < 0.2)
                if rounds == 2 and rng.random() >= body.odd:
                    _counted(body, thread, kind, turn, extra=True)
            out.append(f"E{thread}x{turn}:")
    return FLAGS_HEAD.format(grid=grid, block=block) + body.text() + "\n    ret;\n}\n"


def _counted(body: _Flags, thread: int, kind: str, turn: int, extra: bool = False) -> None:
    """One thread counts itself."""
    rng, out = body.rng, body.lines[thread]
    sem = rng.choice(("relaxed", "release", "acq_rel", "acq_rel"))
    if sem == "relaxed" and rng.random() >= body.odd:
        out.append(body.fence())
    body.labels += 1
    label = f"{thread}y{body.labels}"
    step = 1
    if kind == "sense":
        step = (1 << 31) - body.threads + 1 if thread == 0 else 1
    flag = 4 * extra
    out.append(f"atom.{sem}.{body.scope()}.global.add.u32 %r8, [%d2+{flag}], {step};")
    fence = sem in ("relaxed", "release") and rng.random() >= body.odd
    if kind in ("last", "ticket"):
        wanted = body.threads - 1 if kind == "last" or rng.random() < 0.5 else 0
        out += [body.fence()] if fence and rng.random() < 0.5 else []
        out += [f"setp.ne.u32 %p3, %r8, {wanted};", f"@%p3 bra E{thread}x{turn};"]
        out += [body.fence()] if fence else []
        body.data(thread, rng.randrange(body.threads), False)
        body.data(thread, (thread + 1) % body.threads, rng.random() < 0.2)
        if rng.random() < 0.4:  # for the next launch
            out.append(f"st.{rng.choice(('', '', 'relaxed.gpu.'))}global.u32 [%d2], 0;")
        return
    scope = body.scope()
    load = f"ld.{'relaxed' if fence else 'acquire'}.{scope}.global.u32 %r9, [%d2+{flag}];"
    out += [f"P{label}:", load]
    if kind == "sense":
        out += ["xor.b32 %r10, %r9, %r8;", "setp.gt.s32 %p3, %r10, -1;"]
    else:
        odd = rng.choice((-1, 1)) if rng.random() < body.odd else 0
        out += [f"setp.lt.u32 %p3, %r9, {max(1, (turn + 1) * body.threads + odd)};"]
    out += [f"@%p3 bra P{label};"]
    out += [body.fence()] if fence else []


_CLUSTER_HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: block = {block}
// ptxmm: cluster = 2
// ptxmm: threads = "all"
// ptxmm: args = ["g"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 4 }}
// ptxmm: s = {{ init = 0 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<30>;
    .reg .b64 %d<9>;
    .shared .align 16 .b8 s[16];
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mov.u32 %r11, s;
    mov.u32 %r12, %cluster_ctarank;
    xor.b32 %r13, %r12, 1;
    mapa.shared::cluster.u32 %r14, %r11, %r13;
    ld.shared.u32 %r5, [%r11+12];
"""


def clusters(seed: int) -> str:
    """Threads of clusters that access each other's shared memory between barriers of the cluster."""
    rng = random.Random(f"whole clusters/{seed}")
    grid, block = rng.choice(((2, 1), (2, 1), (2, 2), (4, 1)))
    odd = rng.choice((0.0, 0.1, 0.3))
    lines: list[str] = []
    for _ in range(rng.randrange(2, 7)):
        choice = rng.random()
        if choice < 0.5:
            base = rng.choice(("%r11", "%r11", "%r14", "%r14", "%d1"))
            space = "global" if base == "%d1" else "shared::cluster" if base == "%r14" else "shared"
            guard = ""
            if rng.random() < 0.7:
                register, number = rng.choice((("%r4", rng.randrange(grid * block)), ("%r1", 0)))
                lines.append(f"setp.eq.u32 %p1, {register}, {number};")
                guard = "@%p1 "
            place = f"[{base}+{4 * rng.randrange(2)}]"
            kind = rng.random()
            if kind < 0.2:
                lines.append(f"{guard}red.relaxed.{rng.choice(('cta', 'cluster', 'gpu'))}.{space}.add.u32 {place}, 1;")
            elif kind < 0.6:
                lines.append(f"{guard}st.{space}.u32 {place}, %r4;")
            else:
                lines.append(f"{guard}ld.{space}.u32 %r5, {place};")
        elif choice < 0.9:
            relaxed = rng.random() < 0.3
            if relaxed and rng.random() >= odd:
                lines.append(f"fence.acq_rel.{rng.choice(('cluster', 'gpu', 'cta'))};")
            lines.append(f"barrier.cluster.arrive{'.relaxed' if relaxed else ''};")
            if rng.random() < 0.3:
                lines.append("ld.shared.u32 %r6, [%r11];" if rng.random() < odd else "mov.u32 %r6, 1;")
            lines.append("barrier.cluster.wait;")
        else:
            lines.append("bar.sync 0;")
    if rng.random() >= odd:
        lines += ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
    return _CLUSTER_HEAD.format(grid=grid, block=block) + "\n".join(f"    {line}" for line in lines) + "\n    ret;\n}\n"
