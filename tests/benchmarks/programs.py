"""Litmus tests of any size, as text."""

from __future__ import annotations


def columns(name: str, declarations: list[str], threads: list[list[str]], condition: str) -> str:
    """A litmus test with each thread in a CTA of its own."""
    height = max(len(t) for t in threads)
    head = " | ".join(f"P{i} @ cta {i}" for i in range(len(threads)))
    rows = [" | ".join(t[i] if i < len(t) else "" for t in threads) for i in range(height)]
    body = "".join(f" {row} ;\n" for row in [head, *rows])
    inside = "".join(f"  {d}\n" for d in declarations)
    return f"PTX {name}\n{{\n{inside}}}\n{body}{condition}\n"


def ring(threads: int) -> str:
    """Store buffering around a ring with fence.sc: not every thread can read 0."""
    bodies = [
        [
            f"st.relaxed.gpu.global.u32 [x{i}], 1",
            "fence.sc.gpu",
            f"ld.relaxed.gpu.global.u32 r0, [x{(i + 1) % threads}]",
        ]
        for i in range(threads)
    ]
    condition = "exists (" + " /\\ ".join(f"P{i}:r0 == 0" for i in range(threads)) + ")"
    return columns(f"SB-ring-{threads}", [f".global .u32 x{i} = 0;" for i in range(threads)], bodies, condition)


def readers(count: int) -> str:
    """Two threads that read one location ``count`` times while a third one writes to it: the number of final states
    grows exponentially."""
    loads = [f"ld.relaxed.gpu.global.u32 r{i}, [x]" for i in range(count)]
    stores = [f"st.relaxed.gpu.global.u32 [x], {i + 1}" for i in range(count)]
    shown = "locations [" + "".join(f"P{t}:r{i}; " for t in range(2) for i in range(count)) + "]"
    return columns(f"readers-{count}", [".global .u32 x = 0;"], [loads, loads, stores], shown)


def message(threads: int) -> str:
    """Message passing along a chain of release-acquire pairs: the last thread sees the data."""
    last = threads - 1
    bodies = [["st.global.u32 [data], 1", "st.release.gpu.global.u32 [f0], 1"]]
    bodies += [
        [f"ld.acquire.gpu.global.u32 r0, [f{i - 1}]", f"st.release.gpu.global.u32 [f{i}], r0"] for i in range(1, last)
    ]
    bodies += [[f"ld.acquire.gpu.global.u32 r0, [f{last - 1}]", "ld.global.u32 r1, [data]"]]
    declarations = [".global .u32 data = 0;", *(f".global .u32 f{i} = 0;" for i in range(last))]
    condition = f"exists (P{last}:r0 == 1 /\\ P{last}:r1 == 0)"
    return columns(f"MP-chain-{threads}", declarations, bodies, condition)


def counter(threads: int) -> str:
    """Every thread increments a counter once."""
    bodies = [["atom.add.relaxed.gpu.global.u32 r0, [c], 1"] for _ in range(threads)]
    return columns(f"counter-{threads}", [".global .u32 c = 0;"], bodies, f"forall (c == {threads})")
