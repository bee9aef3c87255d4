"""The two engines and the reference under other readings than the default ones, on programs in which they matter."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptxmm.formats
from ptxmm.cat import index
from tests import reference
from tests.neighbours import neighbours
from tests.support import ROOT
from tests.tally import Tally
from tests.test_agreement import MANY, Bounds, Item, compare, family


def stated() -> dict[str, list[Path]]:
    """The models with readings for which files of ``litmus/`` state a verdict: those that tell the readings apart."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "litmus").glob("*/*.litmus")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("Expect="):
                for model in re.findall(r"[\w.-]+\[[^]]+\](?=:)", line):
                    found.setdefault(model, []).append(path)
    return found


STATED = stated()

SAME = ("ptx-8.5[fence-proxy=free]",)
"""Where a reading makes no difference: what is in program order in ptx-8.5 is generic, so that fences need not reach
further."""


def near(path: Path, model: str, share: int, shift: int = 0) -> list[Item]:
    """A test and ``share`` of its neighbours."""
    (test,) = ptxmm.formats.read(path)
    texts = list(neighbours(test))
    texts = random.Random(f"{model}{shift or ''}").sample(texts, min(share, len(texts)))
    return [(f"{path.stem}, neighbour {n}", t, model) for n, t in enumerate([path.read_text(encoding="utf-8"), *texts])]


def decides(path: Path, model: str) -> bool:
    """Whether the reference has another answer to a test under the readings than without them."""
    (test,) = ptxmm.formats.read(path)
    plain, _, _ = model.partition("[")
    return reference.flagged(test, model) != reference.flagged(test, plain)


def test_all_readings_are_stated() -> None:
    """Each value of each reading is compared below."""
    readings = index().readings
    told = {item for model in STATED for item in model.partition("[")[2].removesuffix("]").split(",")}
    assert {f"{key}={value}" for key, r in readings.items() for value in r.values[1:]} <= told | {"tear=on"}


@pytest.mark.parametrize("model", STATED)
def test_readings(model: str) -> None:
    """A share for every run: a test in which the reading makes a difference, and two neighbours."""
    path = STATED[model][0] if model in SAME else next(path for path in STATED[model] if decides(path, model))
    items = near(path, model, 2)
    assert compare(model, items, Tally(), Bounds(10, 60)) == len(items)


FAMILIES = {
    "ptx-8.5[vector=whole]": ("vectors",),
    "ptx-8.5[atomic=halves]": ("atomics",),
    "ptx-8.5[griddep=all]": ("grids",),
    "ptx-8.5[tcgen05-wait=acquire]": ("tcgen05",),
    "ptx-8.5[proxy-war=free]": ("restricted", "bulk", "tensors"),
    "ptx-8.5[stasync=async]": ("bulk",),
    "ptx-8.5[issue=closure]": ("cp_async", "bulk"),
    "ptx-8.5[read-fence=off]": ("bulk",),
    "ptx-8.5[proxy-locality=path]": ("bulk", "restricted"),
    "ptx-8.5[proxy-locality=thread]": ("bulk", "restricted"),
    "ptx-8.5[proxy-restrict=single]": ("restricted",),
    "ptx-8.5[tmwar=off]": ("tensormaps",),
    "ptx-8.5[cluster-relaxed=literal]": ("cluster", "restricted"),
    "ptx-8.5[mbarrier=rmw]": ("mbarriers", "arrivals"),
    "ptx-8.5[tear=off]": ("torn", "mixed_sizes"),
    "ptx-8.5[b128=split]": ("vectors",),
    "ptx-8.5[cas-failure=write]": ("atomics",),
    "ptx-8.5[release-read=off]": ("atomics",),
    "ptx-8.5[co=direct]": ("atomics", "mixed_sizes"),
    "ptx-8.5[middle=scope]": ("atomics", "restricted"),
    "ptx-8.5[scploc=clique]": ("atomics", "mixed_sizes"),
    "ptx-8.5[warpsync=off]": ("warps",),
}
"""The families of random programs in which a reading may matter."""

PAIRS = [(model, name) for model, names in FAMILIES.items() for name in names]


def random_items(model: str, name: str, seeds: range) -> Iterator[Item]:
    yield from ((who, text, model) for who, text, _ in family(name, seeds))


@pytest.mark.parametrize(("model", "name"), PAIRS[:2])
def test_random_families(model: str, name: str, tally: Tally) -> None:
    items = random_items(model, name, range(20))
    assert compare(f"{name}, {model}", items, tally, Bounds(1, 6, MANY)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("model", STATED)
def test_more_neighbours(model: str, tally: Tally, shift: int) -> None:
    """A dozen of each test that states a verdict of the reading, others with every ``--shift``."""
    items = [item for path in STATED[model] for item in near(path, model, 12, shift)]
    assert compare(f"neighbours, {model}", items, tally, Bounds(10, 600, 1000))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name"), PAIRS)
def test_many_random_families(model: str, name: str, tally: Tally, shift: int) -> None:
    items = random_items(model, name, range(20_000 + shift, 20_060 + shift))
    assert compare(f"{name}, {model}", items, tally, Bounds(3, 300, 1000)) >= 20
