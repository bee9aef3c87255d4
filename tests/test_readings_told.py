"""Readings that programs in use rely on: an answer that rests on one says so unasked (8.6; 9.7.16.6 of PTX ISA 9.0)."""

from __future__ import annotations

import pytest

from ptxmm.cat import load
from ptxmm.cli.checking import Checking
from ptxmm.cli.inputs import Job
from ptxmm.cli.options import Engine
from ptxmm.engines.result import Limits
from ptxmm.formats import read
from tests.support import ROOT


def told(name: str) -> list[str]:
    """The readings that the answer to a litmus test names."""
    (test,) = read(ROOT / "litmus" / f"{name}.litmus")
    result = Checking(Engine.auto, False, "none").run(Job(test, "ptx-8.5", None, False), load("ptx-8.5"), Limits())
    return [note.text.split(":")[0] for note in result.notes if note.text.startswith("rests on")]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("async/TMA-load-empty-slot-no-fence", ["rests on proxy-war"]),
        ("async/TMA-load-empty-slot", []),
        ("async/TMA-load-written-slot-no-fence", []),
        ("async/TMA-load-unread-slot", []),
        ("tcgen05/wait-acquires-mma-commit-ld", ["rests on tcgen05-wait"]),
        ("tcgen05/wait-acquires-ld-mma", ["rests on tcgen05-wait"]),
        ("tcgen05/mma-commit-ld-2-no-fence", []),
        ("tcgen05/mma-reads-shared-no-after", ["rests on tcgen05-wait"]),
    ],
)
def test_an_answer_names_the_reading_that_decides(name: str, key: list[str]) -> None:
    assert told(name) == key
