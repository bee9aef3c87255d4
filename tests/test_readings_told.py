"""Readings that programs in use rely on: an answer that rests on one says so unasked (8.6; 9.7.16.6 of PTX ISA 9.0)."""

from __future__ import annotations

import json

import pytest

from ptxmm.cat import load
from ptxmm.cli.app import run
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


@pytest.mark.parametrize(
    ("command", "name", "notes"),
    [
        ("races", "async/TMA-load-empty-slot-no-fence", ["rests on proxy-war: proxy-war=free gives race-free"]),
        ("races", "async/TMA-load-empty-slot", []),
        ("races", "async/TMA-load-written-slot-no-fence", []),
        ("fences", "async/TMA-load-empty-slot-no-fence", ["rests on proxy-war: proxy-war=free gives holds"]),
        (
            "fences",
            "async/TMA-load-empty-slot",
            ["P0:13: fence.proxy.async.shared::cta: needed: rests on proxy-war: proxy-war=free gives removable"],
        ),
        ("fences", "async/TMA-load-unread-slot", []),
    ],
)
def test_analyses_name_it_too(command: str, name: str, notes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In the same words in text and JSON."""
    arguments = [command, str(ROOT / "litmus" / f"{name}.litmus"), "--model", "ptx-8.5"]
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit):
            run([*arguments, *options])
        out = capsys.readouterr().out
        if options:
            (entry,) = json.loads(out)["results"]
            found = [note["text"] for note in entry["notes"] if note["kind"] == "reading"]
        else:
            found = [line.removeprefix("Note ") for line in out.splitlines() if "rests on" in line]
        assert [text.split(" (PTX ISA")[0] for text in found] == notes
