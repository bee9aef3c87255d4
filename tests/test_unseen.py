"""Values that nothing sees, and values by their bits: neither changes a final state, a flag or a race."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxmm import Limits, read
from ptxmm.analysis.races import races
from ptxmm.engines.result import Observed
from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic import build
from ptxmm.events.symbolic.machine import Setting
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.values import domain
from ptxmm.events.symbolic.values.domain import TooMany
from ptxmm.program.condition import Term
from ptxmm.program.shared.undetermined import Place
from ptxmm.program.shared.unseen import NOTHING, unseen
from tests import random_families
from tests.random_programs import seeded
from tests.reference import everything
from tests.support import ROOT, ask, model_named, parse_one

LITMUS = sorted((ROOT / "litmus").rglob("*.litmus"))


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Every value that nothing sees is left out, also where there are few cases; how many objects that were."""
    found: list[int] = []
    original = build._build

    def sliced(around: Setting, seen: set[Place] | None, untorn: frozenset[str] | None) -> Program:
        if around.unseen is NOTHING:
            raise TooMany("each value", kind="unsupported")
        found.append(len(around.unseen.objects))
        return original(around, seen, untorn)

    monkeypatch.setattr(build, "_build", sliced)
    yield found


@pytest.fixture(params=["left out", "by bits"])
def forced(request: pytest.FixtureRequest, left_out: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What nothing sees is left out, and with ``by bits`` all that is combined of several values is a circuit."""
    if request.param == "by bits":
        monkeypatch.setattr(domain, "LIMIT", 1)


def _some(observed: Observed, seed: int) -> Observed:
    """About a third of what is observed."""
    kit = random.Random(seed)

    def chosen(terms: tuple[Term, ...]) -> list[Term]:
        return [term for term in terms if kit.random() < 0.34]

    return Observed(tuple(chosen(observed.registers)), tuple(chosen(observed.memory)))  # type: ignore[arg-type]


def _same(text: str, model: str, seed: int) -> bool:
    """Whether both engines finish; that they agree is asserted."""
    test = parse_one(text)
    observed = _some(everything(test), seed)
    try:
        found = [
            ask(engine, test, model_named(model), seconds=4, observed=observed) for engine in ("solve", "enumerate")
        ]
    except PtxmmError as error:
        assert error.kind in ("unsupported", "timeout"), error
        return False
    if not all(answer.complete for answer in found):
        return False
    assert found[0].comparable() == found[1].comparable(), f"{model}, {observed}\n{text}"
    return True


def _scalar(seeds: range) -> int:
    return sum(_same(seeded(seed, "ptx-8.5").text(), "ptx-8.5", seed) for seed in seeds)


def test_random_programs_end_alike(forced: None) -> None:
    assert _scalar(range(60)) > 30


@pytest.mark.share(2)
@pytest.mark.parametrize("name", random_families.NAMES)
def test_families_end_alike(name: str, forced: None) -> None:
    least = 0 if name == "together" else 2  # see the slow share
    assert sum(_same(random_families.seeded(name, seed).text(), "ptx-8.5", seed) for seed in range(4)) >= least


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_many_random_programs_end_alike(share: int, forced: None, shift: int) -> None:
    first = 1_000 + 200 * share + shift
    assert _scalar(range(first, first + 200)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", random_families.NAMES)
def test_many_of_the_families_end_alike(name: str, forced: None, shift: int) -> None:
    seeds = range(100 + shift, 160 + shift)
    least = 1 if name == "together" else 15  # what barriers and votes return is no circuit of what they are given
    assert sum(_same(random_families.seeded(name, seed).text(), "ptx-8.5", seed) for seed in seeds) > least


@pytest.mark.share(3)
@pytest.mark.parametrize("path", LITMUS[::24], ids=lambda path: path.stem)
def test_litmus_files_end_alike(path: Path, forced: None) -> None:
    _file(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", LITMUS, ids=lambda path: path.stem)
def test_all_litmus_files_end_alike(path: Path, forced: None) -> None:
    _file(path)


def _file(path: Path) -> None:
    for observed in range(2):
        _same(path.read_text(encoding="utf-8"), "ptx-8.5", observed)


def test_what_is_seen() -> None:
    test = parse_one("""PTX slice
{ .global .u32 x = 7; .global .u32 y; .global .u32 z; .global .u32 a[4]; .global .u32 lock; }
 P0 @ cta 0 {
   ld.weak.u32 r0, [x];
   add.u32 r1, r0, 5;
   st.weak.u32 [y], r1;
   ld.weak.u32 r2, [z];
   mul.lo.u32 r3, r2, 4;
   cvt.u64.u32 rd0, r3;
   mov.u64 rd1, a;
   add.u64 rd1, rd1, rd0;
   st.weak.u32 [rd1], r1;
   atom.relaxed.gpu.add.u32 r4, [y], 1;
   atom.relaxed.gpu.cas.b32 r5, [lock], 0, 1;
   div.u32 r6, r2, r2;
 }
exists (y == 12)
""")
    nothing = unseen(test, ())
    assert nothing.objects == {"y", "a"}  # what is written to a may be in z, which is part of an address
    assert nothing.instructions == (frozenset({9}),)
    final = unseen(test, test.named)
    assert final.objects == {"a"} and final.instructions == (frozenset(),)


def test_races_of_values_with_many_cases() -> None:
    """Each of four turns may read what any other has made: more than are looked at one by one."""
    (test,) = read(ROOT / "tests/cuda/ping_pong.wrong_early_pass.cu")
    found = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 60))
    assert len(found.races) == 9 and found.race_free is False
    made = [a for thread in found.races[0].execution.threads for step in thread.steps for a in step.accesses]
    held = {a.value for a in made if a.kind == "W"}
    assert held <= {1, 2, 11, 12, 21, 22, 111, 112, 121, 122, 211, 212, 221, 222} and len(held) > 1
