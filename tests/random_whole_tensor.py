"""Random programs of two warps that share lanes of tensor memory, as a whole kernel and as a litmus test.

In the kernel the lanes of a warp do the same, but for products, commits and stores to the matrix, which the first lane
alone makes; of a product all lanes but the first one are masked. So what the first lanes of the warps do is the litmus
test, in which a column stands for eight of the kernel.
"""

from __future__ import annotations

import random

HEAD = """\
.version 8.6
.target sm_100a
.address_size 64
// ptxmm: block = 160
.visible .entry k()
{{
    .reg .pred %lead, %p, %q;
    .reg .b32 %r<9>;
    .reg .b32 %v<9>;
    .reg .b64 %d<3>;
    .shared .align 128 .b8 s[4096];
    .shared .align 8 .b64 b[{bars}];
    .shared .b32 base;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, 32;
    setp.lt.u32 %q, %r1, 128;
    and.pred %p, %p, %q;
    @%p bra end;
    and.b32 %r2, %r1, 31;
    setp.eq.u32 %lead, %r2, 0;
    setp.ne.u32 %p, %r1, 0;
    @%p bra made;
{init}
made:
    setp.ge.u32 %p, %r1, 32;
    @%p bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
allocated:
    barrier.sync 0, 64;
    tcgen05.fence::after_thread_sync;
    ld.shared.u32 %r3, [base];
    mov.u32 %r4, s;
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %d1, %r4;
    or.b64 %d1, %d1, 0x0000400800080000;
    setp.ne.u32 %q, %r1, %r1;
    setp.ge.u32 %p, %r1, 32;
    @%p bra other;
{first}
    bra done;
other:
{second}
done:
    tcgen05.wait::ld.sync.aligned;
    tcgen05.wait::st.sync.aligned;
    shr.u32 %r5, %r1, 7;
    shl.b32 %r5, %r5, 3;
    mov.u32 %r6, b;
    add.u32 %r6, %r6, %r5;
    @%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
last:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r6], 0;
    @!%p bra last;
    barrier.sync 0, 64;
    tcgen05.fence::after_thread_sync;
    setp.ge.u32 %p, %r1, 32;
    @%p bra end;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
end:
    ret;
}}
"""
DESCRIPTOR = (1 << 4) | (8 // 8) << 17 | (64 // 16) << 24
VALUES = ", ".join(f"%v{i}" for i in range(8))
MASK = "{0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"


def programs(seed: int) -> tuple[str, str]:
    """The kernel and the litmus test."""
    rng = random.Random(seed)
    lines: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    bars, filters, labels = 9, list[str](), 0

    def add(p: int, kernel: str, litmus: str | None = None) -> None:
        lines[p].append((kernel, kernel if litmus is None else litmus))

    def wait(p: int, bar: int) -> None:
        nonlocal labels
        labels += 1
        sem = rng.choice(("acquire", "acquire", "relaxed"))
        head = f"mbarrier.try_wait.parity.{sem}.cta.shared::cta.b64"
        add(p, f"L{labels}: {head} %p, [b+{8 * bar}], 0;\n    @!%p bra L{labels};", f"{head} p{labels}, [b{bar}], 0;")
        filters.append(f"P{p}:p{labels} == 1")
        if rng.random() < 0.75:
            add(p, "tcgen05.fence::after_thread_sync;")

    work = rng.choice(("ld st mma", "mma mma ld", "st ld", "mma shared", "mma st shared ld")).split()
    used: list[int] = []
    for _ in range(rng.randint(3, 7)):
        p = rng.randrange(2)
        what = rng.choice((*work, "hand", "hand", "commit", "barrier"))
        column = rng.choice((0, 0, 1))
        match what:
            case "ld" | "st":
                vector = f"{{{VALUES}}}", f"[%r3+{8 * column}]"
                one = (f"{{r{len(lines[p])}}}" if what == "ld" else "{1}"), f"[t+{column}]"
                many, few = (", ".join(x if what == "ld" else x[::-1]) for x in (vector, one))
                head = f"tcgen05.{what}.sync.aligned.32x32b"
                add(p, f"{head}.x8.b32 {many};", f"{head}.x1.b32 {few};")
                if rng.random() < 0.6:
                    add(p, f"tcgen05.wait::{what}.sync.aligned;")
            case "mma":
                head = "tcgen05.mma.cta_group::1.kind::f16"
                kernel = f"@%lead {head} [%r3+{8 * column}], %d1, %d1, {DESCRIPTOR}, {MASK}, %q;"
                add(p, kernel, f"{head} [t+{column}], ds, ds, 0, q;")
            case "shared":
                add(p, "@%lead st.shared.u32 [s], 3;", "st.shared.b32 [s], 3;")
                if rng.random() < 0.7:
                    add(p, "fence.proxy.async.shared::cta;")
            case "barrier":
                if rng.random() < 0.7:
                    add(p, "tcgen05.fence::before_thread_sync;")
                for each in range(2):
                    add(each, "barrier.sync 0, 64;", "barrier.sync 0;")
                    if rng.random() < 0.7:
                        add(each, "tcgen05.fence::after_thread_sync;")
            case "hand" | "commit" if len(used) < 6:
                bar = 3 + len(used)
                used.append(1 if what == "commit" else 32)
                to = 1 - p if what == "hand" or rng.random() < 0.7 else p
                if what == "commit":
                    add(p, f"@%lead {COMMIT} [b+{8 * bar}];", f"{COMMIT} [b{bar}];")
                else:
                    if rng.random() < 0.6:
                        add(p, "tcgen05.fence::before_thread_sync;")
                    head = f"mbarrier.arrive.{rng.choice(('release', 'release', 'relaxed'))}.cta.shared::cta.b64 _,"
                    add(p, f"{head} [b+{8 * bar}];", f"{head} [b{bar}];")
                wait(to, bar)
    counts = [1, 1, 1, *used]
    counts += [1] * (bars - len(counts))
    init = "\n".join(f"    mbarrier.init.shared::cta.b64 [b+{8 * i}], {count};" for i, count in enumerate(counts))
    bodies = ["\n".join(f"    {kernel}" for kernel, _ in part) for part in lines]
    kernel = HEAD.format(bars=bars, init=init, first=bodies[0], second=bodies[1])
    declared = "".join(f"  .shared .b64 b{3 + i} @ cta 0 = mbarrier(1);\n" for i in range(len(used)))
    threads = "".join(
        f"P{p} @ cta 0 {{\n  setp.eq.u32 q, 0, 1;\n" + "".join(f"  {text}\n" for _, text in part) + "}\n"
        for p, part in enumerate(lines)
    )
    joined = " /\\ ".join(filters)
    litmus = (
        "PTX random\nISA=8.6\n{\n  .tmem .b32 t[2] @ cta 0 = {0, 0};\n"
        "  .shared .align 16 .b32 s[4] @ cta 0 = {5, 6, 7, 8};\n"
        f"{declared}  .reg .b64 P0:ds = s;\n  .reg .b64 P1:ds = s;\n}}\n{threads}"
        + (f"filter ({joined})\n" if filters else "")
        + "exists (true)\n"
    )
    return kernel, litmus
