"""Random launches of two or three grids, for whole launches (``test_whole_grids``): one after the other on a stream, as
programmatic launches, on two GPUs, beside a thread of the host."""

from __future__ import annotations

import random

_KERNEL = """\
.visible .entry k{number}(.param .u64 p)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<9>;
    .reg .b64 %d<9>;
    .shared .align 16 .b8 s{number}[16];
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    mul.wide.u32 %d4, %r2, 4;
    add.u64 %d5, %d1, %d4;
    mov.u64 %d6, s{number};
{lines}
    ret;
}}
"""
_SCOPES = ("cta", "gpu", "gpu", "sys", "sys")


class _Grid:
    """The statements of the kernel of one grid."""

    def __init__(self, rng: random.Random, programmatic: bool, followed: bool) -> None:
        self.rng, self.programmatic, self.followed = rng, programmatic, followed
        self.lines: list[str] = []
        self.labels = 0

    def access(self) -> None:
        """A weak access of what others access, by each thread or by one of them."""
        rng = self.rng
        base = rng.choice(("%d1", "%d3", "%d3", "%d5", "%d5"))
        offset = 4 * rng.randrange(3) if base == "%d1" else 0
        if rng.random() < 0.5:
            self.lines.append(f"    st.global.u32 [{base}+{offset}], {rng.randrange(1, 4)};")
        else:
            self.lines.append(f"    ld.global.u32 %r3, [{base}+{offset}];")

    def count(self) -> None:
        """An atomic operation."""
        scope = self.rng.choice(_SCOPES)
        self.lines.append(f"    red.relaxed.{scope}.global.add.u32 [%d1+{4 * self.rng.randrange(2)}], 1;")

    def signal(self) -> None:
        """A flag is set."""
        rng, scope = self.rng, self.rng.choice(_SCOPES)
        if rng.random() < 0.3:
            self.lines.append(f"    fence.acq_rel.{rng.choice(_SCOPES)};")
            self.lines.append(f"    st.relaxed.{scope}.global.u32 [%d1+12], 1;")
        else:
            self.lines.append(f"    st.{rng.choice(('release', 'release', 'relaxed'))}.{scope}.global.u32 [%d1+12], 1;")

    def wait(self) -> None:
        """A flag is waited for."""
        rng, scope = self.rng, self.rng.choice(_SCOPES)
        self.labels += 1
        label = f"W{self.labels}"
        sem = rng.choice(("acquire", "acquire", "relaxed"))
        self.lines += [
            f"{label}:",
            f"    ld.{sem}.{scope}.global.u32 %r4, [%d1+12];",
            "    setp.eq.u32 %p2, %r4, 0;",
            f"    @%p2 bra {label};",
        ]
        if sem == "relaxed" and rng.random() < 0.5:
            self.lines.append(f"    fence.acq_rel.{rng.choice(_SCOPES)};")

    def look(self) -> None:
        """A flag is looked at once."""
        rng, scope = self.rng, self.rng.choice(_SCOPES)
        self.labels += 1
        sem = rng.choice(("acquire", "acquire", "relaxed"))
        self.lines += [
            f"    ld.{sem}.{scope}.global.u32 %r4, [%d1+12];",
            "    setp.eq.u32 %p2, %r4, 0;",
            f"    @%p2 bra W{self.labels};",
        ]
        self.access()
        self.lines.append(f"W{self.labels}:" if rng.random() < 0.7 else f"    ret;\nW{self.labels}:")

    def copy(self) -> None:
        """A bulk copy to global memory, whose writes its thread need not wait for."""
        rng = self.rng
        self.lines += ["    st.shared.u32 [%d6], 5;"]
        self.lines += ["    fence.proxy.async;"] * (rng.random() < 0.9)
        self.lines += ["    cp.async.bulk.global.shared::cta.bulk_group [%d1], [%d6], 16;"]
        self.lines += ["    cp.async.bulk.commit_group;"]
        self.lines += [f"    cp.async.bulk.wait_group{rng.choice(('', '.read', '.read'))} 0;"]

    def made(self, size: int, copies: bool) -> list[str]:
        """The statements."""
        rng = self.rng
        steps = [self.access, self.access, self.access, self.count, self.signal, self.wait, self.look]
        chosen = [rng.choice(steps if rng.random() < 0.5 else steps[:3]) for _ in range(rng.choice((1, 2, 2, 3)))]
        if copies and size == 1:
            chosen.append(self.copy)
        for step in chosen:
            if self.programmatic and rng.random() < 0.4:
                self.lines.append("    griddepcontrol.wait;")
            if self.followed and rng.random() < 0.3:
                self.lines.append("    griddepcontrol.launch_dependents;")
            step()
        return self.lines


def launch(seed: int, host: bool = False) -> str:
    """The module of a seed; ``host``: with a thread of the host."""
    rng = random.Random(seed)
    count = 1 if host and rng.random() < 0.5 else rng.choice((2, 2, 3))
    several = rng.random() < 0.3
    copies = rng.random() < 0.25
    head, kernels = "", ""
    seen: set[int] = set()
    left = 4 if host else 5
    grids = []
    for _ in range(count):
        gpu = rng.randrange(2) if several else 0
        grids.append((gpu, gpu in seen and rng.random() < 0.5))
        seen.add(gpu)
    for number, (gpu, programmatic) in enumerate(grids):
        room = max(1, left - (count - number - 1))
        ctas, size = rng.choice([(c, s) for c in (1, 2) for s in (1, 2) if c * s <= room])
        left -= ctas * size
        head += f'// ptxmm: [[grids]]\n// ptxmm: kernel = "k{number}"\n// ptxmm: gpu = {gpu}\n'
        head += '// ptxmm: after = "programmatic"\n' if programmatic else ""
        head += f"// ptxmm: grid = {ctas}\n// ptxmm: block = {size}\n"
        followed = any(later for _, later in grids[number + 1 :])
        lines = _Grid(rng, programmatic, followed).made(ctas * size, copies)
        kernels += _KERNEL.format(number=number, lines="\n".join(lines))
    text = '.version 8.5\n.target sm_90\n.address_size 64\n// ptxmm: args = ["g"]\n' + head
    text += '// ptxmm: [objects]\n// ptxmm: g = { type = "u32", count = 4 }\n'
    if host:
        text += f"// ptxmm: [host]\n// ptxmm: H0 = '{_host(rng)}'\n"
    return text + '// ptxmm: [check]\n// ptxmm: races = "none"\n' + kernels


def _host(rng: random.Random) -> str:
    """What a thread of the host does."""
    wait = "W: ld.acquire.sys.u32 r0, [g+12]; setp.eq.u32 p, r0, 0; @p bra W;"
    signal = f"st.{rng.choice(('release', 'relaxed'))}.sys.u32 [g+12], 1;"
    data = [f"st.u32 [g+{4 * n}], 3;" for n in range(3)] + [f"ld.u32 r1, [g+{4 * n}];" for n in range(3)]
    first, second = rng.choice(data), rng.choice(data)
    return " ".join(rng.choice(((first, signal), (wait, first), (first, wait), (first, "fence.acq_rel.sys;", second))))
