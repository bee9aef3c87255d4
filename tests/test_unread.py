"""What no read reads from because of barriers (``engines.symbolic.unread``): by hand, and on random programs, where
both engines and the reference have the same final states."""

from __future__ import annotations

import random

import pytest

from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic import unread
from ptxmm.engines.symbolic.problem import read_as
from tests.support import model_named, parse_one
from tests.tally import Tally
from tests.test_agreement import Bounds, compare

FRAME = """PTX t
{{
  .global .u32 x = 0;
  .global .u32 y = 0;
  .shared .u32 s[2] @ cta 0;
}}
{threads}
exists (x == 0)
"""
SWAP = ("st.shared.u32 [s], 1; {0} ld.shared.u32 r, [s+4];", "st.shared.u32 [s+4], 2; {0} ld.shared.u32 r, [s];")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "FEW", 0)


def pairs(*bodies: str, places: tuple[str, ...] = ("cta 0", "cta 0"), model: str = "ptx-8.5") -> set[tuple[int, ...]]:
    """Read and write, each as its thread and its instruction; -1 stands for the initial write."""
    threads = "\n".join(
        f"P{i} @ {place} {{ {body} }}" for i, (body, place) in enumerate(zip(bodies, places, strict=True))
    )
    test, chosen = parse_one(FRAME.format(threads=threads)), model_named(model)
    found = unread.never_read(test, chosen, read_as(chosen.readings, 3), Limits().check)
    return {
        (read.thread, read.instruction, *((-1, -1) if write is None else (write.thread, write.instruction)))
        for read, write in found
    }


def swap(between: str, *more: str) -> set[tuple[int, ...]]:
    return pairs(*(body.format(between) + " ".join(more) for body in SWAP))


def test_what_a_barrier_orders() -> None:
    assert swap("barrier.sync 0;") == {(0, 2, -1, -1), (1, 2, -1, -1)}
    # What is stored after the next barrier comes too late for the read, and the first store for a read after that.
    again = ("barrier.sync 0;", "st.shared.u32 [s], 3;")
    assert swap("barrier.sync 0;", again[0], "ld.shared.u32 q, [s+4];") >= {(0, 4, -1, -1), (1, 4, -1, -1)}
    late = pairs(SWAP[0].format("barrier.sync 0;") + "".join(again), SWAP[1].format("barrier.sync 0;") + again[0])
    assert late == {(0, 2, -1, -1), (1, 2, -1, -1), (1, 2, 0, 4)}
    over = pairs(
        "st.shared.u32 [s], 1; barrier.sync 0; barrier.sync 0; ld.shared.u32 r, [s];",
        "barrier.sync 0; st.shared.u32 [s], 2; barrier.sync 0;",
    )
    assert over == {(0, 3, -1, -1), (0, 3, 0, 0)}


@pytest.mark.parametrize(
    "between",
    [
        "",
        "fence.acq_rel.cta;",
        "bar.arrive 0, 64;",
        "barrier.sync 0, 32;",  # each for itself
        "ld.global.u32 q, [x]; setp.eq.u32 p, q, 0; @p barrier.sync 0;",  # it depends on values who comes
    ],
)
def test_what_is_no_such_barrier(between: str) -> None:
    assert swap(between) == set()


def test_who_is_not_in_the_cta_is_not_ordered() -> None:
    body = "st.global.u32 [x], 1; barrier.sync 0; ld.global.u32 r, [x];"
    own = {(0, 2, -1, -1), (1, 2, -1, -1)}
    assert pairs(body, body, places=("cta 0", "cta 1")) == own
    other = pairs(body, "barrier.sync 0; ld.global.u32 r, [x];", places=("cta 0", "cta 1"))
    assert other == {(0, 2, -1, -1)}
    assert pairs(body, "barrier.sync 0; ld.global.u32 r, [x];") == {(0, 2, -1, -1), (1, 1, -1, -1)}


def program(seed: int) -> str:
    """Two or three threads, mostly of one CTA, whose accesses stand between barriers."""
    rng = random.Random(f"unread/{seed}")
    apart = rng.random() < 0.2
    rounds, named = rng.choice((1, 2, 2)), rng.random() < 0.2
    rows = []
    for thread in range(rng.choice((2, 2, 3))):
        parts: list[str] = []
        for round_ in range(rounds + 1):
            for n in range(rng.choice((0, 1, 1, 2))):
                place, order = rng.choice("xy"), rng.choice(("", "", ".relaxed.gpu"))
                parts.append(
                    rng.choice(
                        (
                            f"st{order}.global.u32 [{place}], {rng.choice((1, 2, 3))};",
                            f"ld{order}.global.u32 r{round_}{n}, [{place}];",
                            f"ld{order}.global.u32 r{round_}{n}, [{place}]; st.global.u32 [{place}], r{round_}{n};",
                            f"atom.relaxed.gpu.global.add.u32 r{round_}{n}, [{place}], 1;",
                            "fence.sc.gpu;" if rng.random() < 0.5 else "fence.acq_rel.gpu;",
                        )
                    )
                )
            if round_ < rounds:
                guard = "setp.eq.u32 p, r00, 0; @p " if rng.random() < 0.05 and "r00" in " ".join(parts) else ""
                parts.append(guard + ("bar.warp.sync 0xffffffff;" if named else "barrier.sync 0;"))
        where = "cta 1" if apart and thread == 1 else "cta 0" + (", warp 0" if named else "")
        rows.append(f"P{thread} @ {where} {{ {' '.join(parts)} }}")
    return FRAME.format(threads="\n".join(rows))


def test_no_final_state_changes(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    never = unread.never_read

    def counted(*arguments: object) -> object:
        result = never(*arguments)  # type: ignore[arg-type]
        found.append(len(result))
        return result

    monkeypatch.setattr("ptxmm.engines.symbolic.problem.never_read", counted)
    models = ("ptx-8.5", "ptx-8.5", "ptx-7.5", "sc", "ptx-6.0")
    items = [(f"unread {seed}", program(seed), models[seed % 5]) for seed in range(120)]
    assert compare("barriers that all come to", items, tally, Bounds(2, 60, 400)) >= 50
    assert sum(map(bool, found)) >= 40
