"""``docs/architecture.md`` and ``CONTRIBUTING.md`` say what is so: what may import what, and where things stand."""

from __future__ import annotations

import re
import tomllib
from itertools import combinations

import pytest

from tests.support import ROOT
from tests.test_docs_model import table

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = table("architecture.md", 3)
IMPORTS, APART = [row for row in ROWS if row[0][0] == "`"], [row for row in ROWS if row[0].isdecimal()]
WALKTHROUGHS = re.split(r"^## ", CONTRIBUTING, flags=re.MULTILINE)[2:]
BELOW_ALL = {"errors", "files", "models", "skeletons", "tokens", "words"}


def folders() -> set[str]:
    return {path.stem for path in (ROOT / "ptxmm").iterdir() if not path.name.startswith(("_", "py."))} - BELOW_ALL


def forbidden() -> set[tuple[str, str]]:
    """The pairs of folders of which the first may not import the second, by the contracts."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: set[tuple[str, str]] = set()
    for contract in tomllib.loads(text)["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "forbidden":
            found |= {(a, b) for a in contract["source_modules"] for b in contract["forbidden_modules"]}
        elif contract["type"] == "layers":
            layers = [layer.split(" | ") for layer in contract["layers"]]
            for high, low in combinations(layers, 2):
                found |= {(a, b) for a in low for b in high}
            found |= {(a, b) for layer in layers for a in layer for b in layer if a != b}
    return {(a.removeprefix("ptxmm."), b.removeprefix("ptxmm.")) for a, b in found}


def test_the_table_of_imports_is_that_of_the_contracts() -> None:
    listed = {}
    for folder, _, may in IMPORTS:
        names = set(re.findall(r"`(\w+)`", may))
        listed[folder.strip("`")] = folders() - {folder.strip("`")} - names if may.startswith("all") else names
    barred = forbidden()
    assert listed == {a: {b for b in folders() - {a} if (a, b) not in barred} for a in folders()}
    assert all((low, folder) in barred for low in ("errors", "files", "tokens", "words") for folder in folders())


def test_five_things_are_written_twice() -> None:
    assert [row[0] for row in APART] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("row", APART, ids=lambda row: row[0])
def test_what_the_sides_must_never_share_stands_on_each(row: list[str]) -> None:
    explicit, symbolic = re.findall(r"`(events/[^`]+)`", row[2])
    assert explicit.replace("explicit", "symbolic") == symbolic
    assert (ROOT / "ptxmm" / explicit).exists() and (ROOT / "ptxmm" / symbolic).exists()


def named(text: str) -> list[str]:
    """The files and folders that a text names."""
    return re.findall(r"`((?:(?:ptxmm|tests|docs|litmus)/[\w./*+-]+|mkdocs\.yml|pyproject\.toml|README\.md))`", text)


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_that_the_page_names_exist(page: str) -> None:
    """But for those that an example makes, whose folders do."""
    text = (ROOT / page).read_text(encoding="utf-8")
    made = [name for part in re.findall(r"; new:\s(.*(?:\n.+)*)", text) for name in named(part)]
    assert all((ROOT / name).parent.is_dir() and not (ROOT / name).exists() for name in made)
    missing = [name for name in named(text) if name not in made and not list(ROOT.glob(name.rstrip("/")))]
    assert named(text) and not [name for name in missing if "NAME" not in name]


def test_there_are_five_walkthroughs() -> None:
    assert len(WALKTHROUGHS) == 5


@pytest.mark.parametrize("walkthrough", WALKTHROUGHS, ids=lambda text: text.split("\n")[0])
def test_a_walkthrough_ends_with_what_its_example_touched(walkthrough: str) -> None:
    last = walkthrough.strip().split("\n\n")[-1]
    assert last.startswith("Touched") and named(last) and "Example: " in walkthrough
