"""Random kernels whose threads hand data on by mbarriers and asynchronous copies, for whole launches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tests.random_whole import scattered

Maker = Callable[[int], str]
Step = tuple[int, list[str]]
"""A thread, and lines that it executes."""

HEAD = """\
.version 8.6
.target sm_90
.address_size 64
// ptxmm: grid = 1
// ptxmm: block = {block}
// ptxmm: threads = "all"
// ptxmm: args = ["g"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 16 }}
// ptxmm: s = {{ init = 0 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<9>;
    .reg .b64 %d<20>;
    .shared .align 16 .b8 s[48];
    .shared .align 8 .b64 full[2];
    .shared .align 8 .b64 empty[2];
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, 1;
"""


class _Pipeline:
    """The steps of each of ``block`` threads, in the order of its program."""

    def __init__(self, rng: random.Random, block: int, order: int = 0) -> None:
        self.rng, self.block, self.order, self.labels = rng, block, order, 0
        self.steps: list[list[list[str]]] = [[] for _ in range(block)]

    def add(self, thread: int, *lines: str) -> None:
        self.steps[thread].append(list(lines))

    def wait(self, thread: int, where: str, parity: int) -> None:
        """A loop on ``test_wait`` or ``try_wait``, with the result in a predicate or in a register."""
        self.labels += 1
        label, kind = f"W{self.labels}", self.rng.choice(("test_wait", "try_wait"))
        sem = self.rng.choice(("", "", ".acquire.cta", ".relaxed.cta")) if self.rng.random() < 0.3 else ""
        ask = f"mbarrier.{kind}.parity{sem}.shared.b64 %p4, [{where}], {parity};"
        if self.rng.random() < 0.5:
            self.add(thread, f"{label}:", ask, f"@!%p4 bra {label};")
            if sem == ".relaxed.cta" and self.rng.random() < 0.7:
                self.add(thread, "fence.acq_rel.cta;")
        else:
            again = ("selp.b32 %r4, 1, 0, %p4;", "setp.eq.u32 %p5, %r4, 0;", f"@%p5 bra {label};")
            self.add(thread, f"{label}:", ask, *again)

    def wait_for_state(self, thread: int, where: str, state: int) -> None:
        self.labels += 1
        label = f"W{self.labels}"
        self.add(
            thread, f"{label}:", f"mbarrier.test_wait.shared.b64 %p4, [{where}], %d{state};", f"@!%p4 bra {label};"
        )

    def mistake(self) -> None:
        """Take out a step, exchange two, or do one twice."""
        rng = self.rng
        thread = rng.choice([t for t in range(self.block) if self.steps[t]])
        steps = self.steps[thread]
        at, kind = rng.randrange(len(steps)), rng.randrange(5)
        if kind < 2:
            del steps[at]
        elif kind < 4 and at + 1 < len(steps):
            steps[at], steps[at + 1] = steps[at + 1], steps[at]
        elif not any(line.endswith(":") for line in steps[at]):
            steps.insert(at, steps[at])

    def text(self, counts: Iterable[tuple[str, int]], begin: str = "bar.sync 0;") -> str:
        """The kernel: thread 0 initialises the mbarriers, all of them meet, and each goes its way."""
        lines = ["setp.ne.u32 %p1, %r1, 0;", "@%p1 bra I;"]
        lines += [f"mbarrier.init.shared.b64 [{where}], {count};" for where, count in counts]
        lines += ["ld.shared.u32 %r5, [s+44];", "I:", *([begin] if begin else [])]
        blocks = [[line for step in steps for line in step] for steps in self.steps]
        if self.order:
            lines += scattered(blocks, "%r1", "%r8", self.order)
        for thread, block in enumerate(blocks if not self.order else []):
            lines += [f"setp.ne.u32 %p1, %r1, {thread};", f"@%p1 bra T{thread};", *block, f"T{thread}:"]
        body = "".join(f"{'' if line.endswith(':') else '    '}{line}\n" for line in lines)
        return HEAD.format(block=self.block) + body + "    ret;\n}\n"


def _arrival(rng: random.Random, where: str, state: str = "%d9") -> list[str]:
    kind = rng.random()
    if kind < 0.75:
        return [f"mbarrier.arrive.shared.b64 {state}, [{where}];"]
    if kind < 0.85:
        return [f"mbarrier.arrive.shared.b64 {state}, [{where}], 1;"]
    if kind < 0.92:
        return [
            f"mbarrier.arrive.expect_tx.shared.b64 {state}, [{where}], 16;",
            f"mbarrier.complete_tx.shared.b64 [{where}], 16;",
        ]
    fence = rng.choice(([], ["fence.acq_rel.cta;"], ["fence.acq_rel.gpu;"]))
    return [*fence, f"mbarrier.arrive.relaxed.cta.shared.b64 {state}, [{where}];"]


def ring(seed: int, order: int = 0) -> str:
    """A ring of one or two stages between a producer and one or two consumers, perhaps with a mistake."""
    rng = random.Random(f"ring/{seed}")
    consumers, stages, items = rng.choice((1, 1, 1, 2)), rng.choice((1, 2)), rng.choice((1, 2, 2, 3))
    made = _Pipeline(rng, 1 + consumers, order)
    wrong = rng.choice((0, 0, 1, 1, 2))
    odd = rng.randrange(8) if rng.random() < 0.15 else -1
    for item in range(items):
        stage, turn = item % stages, item // stages & 1
        full, empty, place = f"full+{8 * stage}", f"empty+{8 * stage}", f"s+{4 * stage}"
        if item >= stages or rng.random() < 0.5:
            made.wait(0, empty, turn ^ 1 ^ (odd == item))
        made.add(0, f"st.shared.u32 [{place}], %r3;")
        made.add(0, *_arrival(rng, full))
        for consumer in range(1, 1 + consumers):
            made.wait(consumer, full, turn ^ (odd == 4 + item))
            made.add(consumer, f"ld.shared.u32 %r5, [{place}];")
            made.add(consumer, *_arrival(rng, empty))
    for _ in range(wrong):
        made.mistake()
    filled = 1 + (rng.random() < 0.1)
    counts = [(f"full+{8 * n}", filled) for n in range(stages)] + [(f"empty+{8 * n}", consumers) for n in range(stages)]
    return made.text(counts, "" if rng.random() < 0.05 else "bar.sync 0;")


def meetings(seed: int, order: int = 0) -> str:
    """Threads that arrive at mbarriers and wait for the state that they got, a few times, perhaps with a mistake."""
    rng = random.Random(f"meetings/{seed}")
    block = rng.choice((2, 2, 3))
    made = _Pipeline(rng, block, order)
    number = [0] * block
    for turn in range(rng.randrange(1, 4)):
        where = rng.choice(("full", "full", "empty"))
        for thread in range(block):
            if rng.random() < 0.6:
                made.add(thread, f"st.shared.u32 [s+{4 * rng.choice((thread, thread, 0))}], %r3;")
            state = 10 + number[thread]
            number[thread] += 1
            made.add(thread, *_arrival(rng, where, f"%d{state}"))
            if rng.random() < 0.9:
                if rng.random() < 0.5:
                    made.wait_for_state(thread, where, state)
                else:
                    made.wait(thread, where, turn & 1)
            if rng.random() < 0.6:
                made.add(thread, f"ld.shared.u32 %r5, [s+{4 * rng.choice(((thread + 1) % block, thread))}];")
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        made.mistake()
    return made.text([("full", block), ("empty", block)])


def arrivals(seed: int, order: int = 0) -> str:
    """A few operations on one mbarrier, in any order."""
    rng = random.Random(f"arrivals/{seed}")
    block = rng.choice((2, 2, 3))
    made = _Pipeline(rng, block, order)
    for thread in range(block):
        for _ in range(rng.randrange(1, 5)):
            kind = rng.randrange(10)
            if kind < 4:
                made.add(thread, *_arrival(rng, "full"))
            elif kind < 5:
                made.add(thread, "mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 16;")
            elif kind < 6:
                made.add(thread, "mbarrier.complete_tx.relaxed.cta.shared.b64 [full], 16;")
            elif kind < 7:
                drop = rng.choice(("arrive_drop", "arrive.noComplete"))
                made.add(thread, f"mbarrier.{drop}.shared.b64 %d9, [full], 1;")
            elif kind < 9:
                made.wait(thread, "full", rng.randrange(2))
            else:
                made.add(thread, "st.shared.u32 [s], %r3;")
        made.add(thread, rng.choice(("st.shared.u32 [s], %r3;", "ld.shared.u32 %r5, [s];", "ld.shared.u32 %r5, [s];")))
    return made.text([("full", rng.randrange(1, 4))])


def groups(seed: int, order: int = 0) -> str:
    """Threads that fill two buffers by ``cp.async`` and read what another one has copied, perhaps with a mistake."""
    rng = random.Random(f"groups/{seed}")
    made = _Pipeline(rng, 2, order)
    tiles, ahead = rng.choice((1, 2, 2)), rng.choice((0, 1))
    late, noinc = rng.random() < 0.3, rng.choice(("", ".noinc"))

    def copy(thread: int, tile: int) -> None:
        size = rng.choice((4, 4, 4, 0))
        place = f"s+{8 * (tile % 2) + 4 * thread}"
        made.add(thread, f"cp.async.ca.shared.global [{place}], [%d1+{4 * tile}], 4{', 0' if not size else ''};")
        if not late:
            made.add(thread, "cp.async.commit_group;")

    for thread in (0, 1):
        for tile in range(tiles):
            if tile == 0 or not ahead:
                copy(thread, tile)
            if ahead and tile + 1 < tiles:
                copy(thread, tile + 1)
            if late:
                made.add(thread, f"cp.async.mbarrier.arrive{noinc}.shared.b64 [full];")
                made.add(thread, *_arrival(rng, "full") if not noinc else ["mov.u32 %r3, 1;"])
                made.wait(thread, "full", tile & 1)
            else:
                wait = rng.choice(("wait_all", f"wait_group {ahead}", f"wait_group {ahead}"))
                made.add(thread, f"cp.async.{wait if tile + 1 < tiles else rng.choice(('wait_all', 'wait_group 0'))};")
                made.add(thread, "barrier.sync 0;")
            made.add(thread, f"ld.shared.u32 %r5, [s+{8 * (tile % 2) + 4 * (thread ^ 1)}];")
            if rng.random() < 0.8:
                made.add(thread, "barrier.sync 0;")
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        made.mistake()
    return made.text([("full", 2)])


def _proxy_fence(rng: random.Random) -> list[str]:
    kind = rng.random()
    if kind < 0.1:
        return ["mov.u32 %r3, 1;"]
    space = rng.choice(("", "", ".shared::cta", ".shared::cluster")) if kind < 0.9 else ".global"
    return [f"fence.proxy.async{space};"]


_MAP = '// ptxmm: map = { tensormap = { target = "g", type = "u32", box = [4], dims = [16] } }\n'


def loads(seed: int, order: int = 0) -> str:
    """A ring that bulk copies fill, perhaps with a mistake."""
    rng = random.Random(f"loads/{seed}")
    consumers, stages, items = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 2)), rng.choice((1, 2, 2))
    made = _Pipeline(rng, 1 + consumers, order)
    apart, tensor = rng.random() < 0.2, rng.random() < 0.2
    if rng.random() < 0.3:
        made.add(1, "st.shared.u32 [s], %r3;")
        made.add(1, *_proxy_fence(rng))
        for thread in range(1 + consumers):
            made.add(thread, "barrier.sync 0;")
    for item in range(items):
        stage, turn = item % stages, item // stages & 1
        full, empty, place = f"full+{8 * stage}", f"empty+{8 * stage}", f"s+{16 * stage}"
        if item >= stages or rng.random() < 0.5:
            made.wait(0, empty, turn ^ 1)
        if apart:
            made.add(0, f"mbarrier.expect_tx.relaxed.cta.shared.b64 [{full}], 16;")
        else:
            made.add(0, f"mbarrier.arrive.expect_tx.shared.b64 %d9, [{full}], 16;")
        kind, complete = "shared::cluster.global", "mbarrier::complete_tx::bytes"
        if tensor:
            made.add(0, f"cp.async.bulk.tensor.1d.{kind}.tile.{complete} [{place}], [%d19, {{{4 * item}}}], [{full}];")
        else:
            made.add(0, f"cp.async.bulk.{kind}.{complete} [{place}], [%d1+{16 * item}], 16, [{full}];")
        if apart:
            made.add(0, f"mbarrier.arrive.shared.b64 %d9, [{full}];")
        for consumer in range(1, 1 + consumers):
            made.wait(consumer, full, turn)
            made.add(consumer, f"ld.shared.u32 %r5, [{place}+{rng.choice((0, 4))}];")
            made.add(consumer, *_proxy_fence(rng))
            made.add(consumer, *_arrival(rng, empty))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        made.mistake()
    counts = [(f"full+{8 * n}", 1) for n in range(stages)] + [(f"empty+{8 * n}", consumers) for n in range(stages)]
    text = made.text(counts)
    if tensor:
        text = text.replace('args = ["g"]', 'args = ["g", "map"]').replace("// ptxmm: s =", f"{_MAP}// ptxmm: s =")
        text = text.replace("k(.param .u64 p)", "k(.param .u64 p, .param .align 64 .b8 q[128])")
        text = text.replace(
            "    mov.u32 %r1", "    mov.b64 %d18, q;\n    cvta.param.u64 %d19, %d18;\n    mov.u32 %r1", 1
        )
    return text


def stores(seed: int, order: int = 0) -> str:
    """Words of shared memory that bulk copies and reductions take to global memory, perhaps with a mistake."""
    rng = random.Random(f"stores/{seed}")
    made = _Pipeline(rng, 2, order)
    add = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
    copies = ("cp.async.bulk.global.shared::cta.bulk_group", add)
    for item in range(rng.choice((1, 2))):
        place = f"s+{rng.choice((0, 16 * (item & 1)))}"
        writer = rng.choice((0, 0, 1))
        made.add(writer, f"st.shared.u32 [{place}], %r3;")
        made.add(writer, *_proxy_fence(rng))
        if writer or rng.random() < 0.2:
            made.add(0, "barrier.sync 0;")
            made.add(1, "barrier.sync 0;")
        made.add(0, f"{rng.choice(copies)} [%d1+{16 * item}], [{place}], 16;")
        made.add(0, "cp.async.bulk.commit_group;")
        read = rng.choice(("", ".read"))
        made.add(0, f"cp.async.bulk.wait_group{read} {rng.choice((0, 0, 1))};")
        if rng.random() < 0.5:
            made.add(0, rng.choice((f"st.shared.u32 [{place}], %r3;", f"ld.global.u32 %r5, [%d1+{16 * item}];")))
    made.add(0, "cp.async.bulk.wait_group 0;")
    made.add(0, "barrier.sync 1;")
    made.add(1, "barrier.sync 1;")
    made.add(1, rng.choice(("ld.global.u32 %r5, [%d1];", "st.shared.u32 [s], %r3;", "ld.global.u32 %r5, [%d1+16];")))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        made.mistake()
    return made.text([("full", 1)])


def clusters(seed: int) -> str:
    """Two CTAs of a cluster that hand data to each other by mbarriers, ``st.async`` and bulk copies."""
    rng = random.Random(f"clusters/{seed}")
    made = _Pipeline(rng, 2)
    both = rng.random() < 0.3
    scope = rng.choice((".cluster", ".cluster", ".cluster", ".cta"))
    end = ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
    for sender in (0, 1) if both else (0,):
        receiver = sender ^ 1
        kind = rng.randrange(4)
        expects = f"mbarrier.arrive.expect_tx.shared.b64 %d9, [full], {16 if kind == 2 else 4};"
        if kind < 1:
            made.add(sender, "st.shared::cluster.u32 [%r10], %r3;")
            made.add(sender, f"mbarrier.arrive.release{scope}.shared::cluster.b64 _, [%r11];")
        else:
            made.add(receiver, expects)
        if kind == 1:
            made.add(sender, "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r3, [%r11];")
        elif kind == 2:
            made.add(sender, "st.shared.u32 [s+16], %r3;")
            made.add(sender, *_proxy_fence(rng))
            copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
            made.add(sender, f"{copy} [%r10], [%r12], 16, [%r11];")
        elif kind == 3:
            red = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
            made.add(sender, f"{red} [%r10], %r3, [%r11];")
        made.wait(receiver, "full", 0)
        if kind == 0 and scope == ".cluster":
            wait = next(step for step in reversed(made.steps[receiver]) if step[0].endswith(":"))
            for old in (".acquire.cta", ".relaxed.cta", ""):
                wait[1] = wait[1].replace(f".parity{old}.shared", ".parity.acquire.cluster.shared")
        made.add(receiver, "ld.shared.u32 %r5, [s];")
    for thread in (0, 1):
        made.add(thread, *end)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        made.mistake()
    start = rng.choice(("", ".relaxed", ".relaxed"))
    fence = ["fence.mbarrier_init.release.cluster;"] if rng.random() < 0.85 else []
    lines = ["mbarrier.init.shared.b64 [full], 1;", *fence, f"barrier.cluster.arrive{start};", "barrier.cluster.wait;"]
    lines += ["mov.u32 %r7, s;", "mov.u32 %r8, full;", "add.u32 %r12, %r7, 16;", "xor.b32 %r9, %r1, 1;"]
    lines += ["mapa.shared::cluster.u32 %r10, %r7, %r9;", "mapa.shared::cluster.u32 %r11, %r8, %r9;"]
    for thread, steps in enumerate(made.steps):
        lines += [f"setp.ne.u32 %p1, %r1, {thread};", f"@%p1 bra T{thread};"]
        lines += [line for step in steps for line in step]
        lines += [f"T{thread}:"]
    return _cluster(lines)


def _cluster(lines: list[str]) -> str:
    """A kernel of two CTAs of a thread each."""
    body = "".join(f"{'' if line.endswith(':') else '    '}{line}\n" for line in lines)
    head = HEAD.format(block=1).replace("grid = 1", "grid = 2\n// ptxmm: cluster = 2").replace("%tid.x", "%ctaid.x")
    return head.replace("%r<9>", "%r<20>") + body + "    ret;\n}\n"


def invalidations(seed: int, order: int = 0) -> str:
    """An mbarrier that is used, invalidated, and perhaps initialised again, by threads that meet on the way or not."""
    rng = random.Random(f"invalidations/{seed}")
    block = rng.choice((2, 2, 3))
    made = _Pipeline(rng, block, order)

    def meet() -> None:
        kind, one = rng.randrange(6), rng.randrange(block)
        if kind < 3 or lives > 1:  # the engines look at the order of operations on mbarriers apart from flags
            for thread in range(block):
                made.add(thread, "barrier.sync 0;")
        elif kind < 5:
            sems = rng.choice((("release", "acquire"), ("relaxed", "relaxed")))
            made.add(one, f"st.{sems[0]}.cta.shared.u32 [s+{4 * made.labels}], %r3;")
            made.labels += 1
            look = f"ld.{sems[1]}.cta.shared.u32 %r4, [s+{4 * made.labels - 4}];"
            for thread in range(block):
                if thread != one and made.labels < 10:
                    made.add(thread, f"F{made.labels}{thread}:", look, "setp.ne.u32 %p4, %r4, 1;",
                             f"@%p4 bra F{made.labels}{thread};")  # fmt: skip

    count, turn, lives = rng.choice((1, 1, 2, block)), 0, rng.choice((1, 1, 2))
    for life in range(lives):
        for _ in range(rng.choice((0, 1, 1, 2))):
            arriving = rng.choice((min(count, block), min(count, block), 1))
            for thread in rng.sample(range(block), arriving):
                made.add(thread, *_arrival(rng, "full"))
            for thread in range(block):
                if rng.random() < 0.6:
                    made.wait(thread, "full", turn)
            turn ^= 1
        if rng.random() < 0.7:
            meet()
        if life or rng.random() < 0.9:
            one = rng.randrange(block)
            made.add(one, "mbarrier.inval.shared.b64 [full];")
            if rng.random() < 0.3:
                meet()
                one = rng.randrange(block)
            if not life:
                made.add(one, f"mbarrier.init.shared.b64 [full], {count};")
                meet()
            turn = 0
    if rng.random() < 0.3 and all(made.steps):
        made.mistake()
    return made.text([("full", count)])


def exits(seed: int) -> str:
    """Two CTAs of a cluster that use each other's shared memory, and perhaps end too early."""
    rng = random.Random(f"exits/{seed}")
    made = _Pipeline(rng, 2)
    user = rng.randrange(2)
    owner = user ^ 1
    for _ in range(rng.choice((1, 1, 2))):
        made.add(user, rng.choice((
            "st.shared::cluster.u32 [%r10], %r3;", "ld.shared::cluster.u32 %r5, [%r10];",
            "st.relaxed.cluster.shared::cluster.u32 [%r10], %r3;",
            "atom.relaxed.cluster.shared::cluster.add.u32 %r5, [%r10], %r3;",
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];",
            "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r11];",
        )))  # fmt: skip
    kind = rng.randrange(8)
    if kind < 3:
        sems = rng.choice(("release", "release", "release", "relaxed")), rng.choice(("acquire", "acquire", "relaxed"))
        where = rng.choice((("shared::cluster", "%r13", "shared", "s+8"), ("global", "%d1", "global", "%d1")))
        made.add(user, f"st.{sems[0]}.cluster.{where[0]}.u32 [{where[1]}], %r3;")
        made.add(owner, "L:", f"ld.{sems[1]}.cluster.{where[2]}.u32 %r4, [{where[3]}];", "setp.ne.u32 %p4, %r4, 1;",
                 "@%p4 bra L;")  # fmt: skip
    elif kind < 4:
        made.wait(owner, "full", 0)
    elif kind < 5:
        made.add(owner, "L:", "ld.relaxed.cluster.shared.u32 %r4, [s];", "setp.ne.u32 %p4, %r4, 1;", "@%p4 bra L;")
    elif kind < 7:
        sem = rng.choice(("", "", ".relaxed"))
        fence = ["fence.acq_rel.cluster;"] if rng.random() < 0.3 else []
        for thread in (0, 1):
            made.add(thread, *fence, f"barrier.cluster.arrive{sem};", "barrier.cluster.wait;")
    if rng.random() < 0.2:
        made.mistake()
    lines = ["mbarrier.init.shared.b64 [full], 1;", "fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive;"]
    lines += ["barrier.cluster.wait;", "mov.u32 %r7, s;", "mov.u32 %r8, full;", "xor.b32 %r9, %r1, 1;"]
    lines += ["mapa.shared::cluster.u32 %r10, %r7, %r9;", "mapa.shared::cluster.u32 %r11, %r8, %r9;"]
    lines += ["add.u32 %r13, %r10, 8;"]
    for thread, steps in enumerate(made.steps):
        lines += [f"setp.ne.u32 %p1, %r1, {thread};", f"@%p1 bra T{thread};"]
        lines += [line for step in steps for line in step]
        lines += [f"T{thread}:"]
    return _cluster(lines)
