"""Races of equal values in whole launches: the launch or a line of the source allows them (docs/modules.md)."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats.modules.read import parse_ptx
from tests import random_whole
from tests.support import model_named
from tests.test_whole import among
from tests.test_whole_claims import condition, judged, launch

MAKERS = [random_whole.kernel, random_whole.warps, random_whole.flags, random_whole.counters, random_whole.clusters]


def equal(text: str, seed: int) -> str:
    """A random kernel with few values, more stores of one cell by all threads, in which races of equal ones are
    allowed, everywhere or in some lines."""
    rng = random.Random(f"whole same value/{seed}")
    lines = []
    guard = "@%p5 " if 'threads = "lane 0"' in text else ""
    for line in text.split("\n"):
        if rng.random() < 0.1 and re.match(r" *(bar|ld)\S", line) and "[p" not in line and "%d1" not in line:
            lines.append(f"    {guard}st.global.u32 [%d1+{4 * rng.randrange(2)}], 1;")
        lines.append(line)
    store = re.compile(r"(st\.(?:global|shared)\S* \[[^]]*\]), (?:1|%r3);")
    lines = [store.sub(lambda m: f"{m[1]}, {rng.choice('1112')};", line) for line in lines]
    if rng.random() < 0.7:
        return "\n".join(lines).replace("// ptxmm: args", '// ptxmm: assume = ["same-value-races"]\n// ptxmm: args')
    allowed = [
        f'{line}  // ptxmm: allow(race: same-value, "x")' if "st." in line and rng.random() < 0.8 else line
        for line in lines
    ]
    return "\n".join(allowed)


def compare(path: Path, text: str, seconds: float) -> bool:
    """The answer about a launch and what the engine says of all its executions; whether that is known, each within so
    many seconds."""
    found = judged(path, text, seconds)
    (test,) = parse_ptx(text, str(path))
    try:
        every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + seconds))
    except Timeout:
        return False
    if every.status != "complete":
        return False
    if found.answer == "race-free":
        assert every.race_free is True, text
    if found.answer == "race":
        assert among(text, found, every), text
    return found.answer in ("race-free", "race")


@pytest.mark.parametrize(("make", "count"), list(zip(MAKERS, (40, 20, 30, 10, 20), strict=True)))
def test_random_kernels(make: random_whole.Maker, count: int, tmp_path: Path) -> None:
    """Most take a twentieth of a second; a loop that writes before it asks again goes on as long as it may."""
    done = sum(compare(tmp_path / "k.ptx", equal(make(seed), seed), 2) for seed in range(count))
    assert done >= count // 4


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_many_random_kernels(make: random_whole.Maker, tmp_path: Path) -> None:
    done = sum(compare(tmp_path / "k.ptx", equal(make(seed), seed), 10) for seed in range(30_000, 30_400))
    assert done >= 200


ALL = 'assume = ["same-value-races"]'
LINE = '  // ptxmm: allow(race: same-value, "they agree")'
SAME = "st.global.u32 [%d1], 7;"
THEN = "mov.u32 %r5, %tid.x; setp.lt.u32 %p2, %r5, 16; "


def assuming(body: str, claim: str = "races = 'none'", lines: bool = False) -> str:
    text = launch(claim, body, grid=1, threads="all")
    if lines:
        return "\n".join(line + LINE if "st." in line else line for line in text.split("\n"))
    return text.replace("// ptxmm: args", f"// ptxmm: {ALL}\n// ptxmm: args")


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize(
    ("body", "word", "says"),
    [
        (SAME, "race-free", None),
        ("st.global.u32 [%d1], %r1;", "race", None),
        (THEN + "selp.u32 %r6, 7, 8, %p2; st.global.u32 [%d1], %r6;", "race", None),
        # A later read comes after one of the writes only, or after all of them.
        (SAME + " bar.sync 0; ld.global.u32 %r5, [%d1];", "race-free", None),
        (SAME + " @%p1 ld.global.u32 %r5, [%d1];", "race", None),
        (SAME + " bar.warp.sync 1; @%p1 ld.global.u32 %r5, [%d1];", "undefined", None),
        # The writer that is not the last one of the execution races with what comes after the last one.
        (SAME + " setp.eq.u32 %p2, %r1, 31; @%p2 ld.global.u32 %r5, [%d1];", "race", None),
        (SAME + " setp.eq.u32 %p2, %r1, 31; @%p2 st.global.u32 [%d1], 8;", "race", None),
        ("setp.eq.u32 %p2, %r1, 31; @%p2 st.global.u32 [%d1], 8; " + SAME, "race", None),
        # Other bytes, other sizes, a strong store, an atomic operation.
        ("st.global.u16 [%d1], 7; st.global.u16 [%d1+2], 0;", "race-free", None),
        ("@%p1 st.global.u16 [%d1], 0; @!%p1 st.global.u32 [%d1], 0;", "race", None),
        ("@%p1 st.relaxed.gpu.global.u32 [%d1], 7; @!%p1 st.global.u32 [%d1], 7;", "undecided", "for strong writes"),
        ("@%p1 atom.global.exch.b32 %r5, [%d1], 7; @!%p1 st.global.u32 [%d1], 7;", "race", None),
        # What is written is not worked out, or depends on who came first.
        ("sin.approx.f32 %f1, 0f3F800000; st.global.f32 [%d1], %f1;", "undecided", "what it writes is not worked out"),
        ("atom.global.add.u32 %r5, [%d1+4], 1; st.global.u32 [%d1], %r5;", "race", None),
        # A loop without synchronization writes other values one after the other.
        ("mov.u32 %r5, 0; L: st.global.u32 [%d1], %r5; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3; @%p2 bra L;",
         "race", None),
    ],
)  # fmt: skip
def test_what_is_found(body: str, word: str, says: str | None, lines: bool, tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", assuming(body, lines=lines).replace(".reg .b64", ".reg .f32 %f<4>; .reg .b64"))
    assert (found.answer, (says or "") in (found.reason or "")) == (word, True), found
    if not lines:  # without the assumption it is named where only that is missing
        text = assuming(body).replace(f"// ptxmm: {ALL}\n", "").replace(".reg .b64", ".reg .f32 %f<4>; .reg .b64")
        bare = judged(tmp_path / "k.ptx", text)
        told = [
            any("rests on same-value-races" in note.text for note in notes)
            for notes in (bare.notes, bare.claims[0].notes)
        ]
        assert told == [bare.answer == "race" and word == "race-free"] * 2, bare


def test_it_is_named(tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", assuming(SAME + " bar.sync 0;", condition("forall (x[0] == 7)")))
    (claim,) = found.claims
    assert (found.test, claim.test, claim.holds) == (*2 * ("k (assuming same-value-races)",), True)
    assert "races of writes of the same value are left out (same-value-races)" in {note.text for note in claim.notes}
    found = judged(tmp_path / "k.ptx", assuming(SAME + " bar.sync 0; @%p1 st.shared.u32 [%r4], 1;", lines=True))
    notes = [note.text for note in found.notes]
    assert "line 26: writes of the same value race, which is allowed: they agree" in notes
    assert "line 28: no writes of the same value race here: they agree" in notes
    text = launch("races = 'none'", SAME + " bar.sync 0;", grid=1).replace("bar.sync 0;", "bar.sync 0;" + LINE)
    found = judged(tmp_path / "k.ptx", text)
    assert found.answer == "race"
    assert "line 27: no thread writes here, so that nothing is allowed: they agree" in [n.text for n in found.notes]
