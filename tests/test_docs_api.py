"""docs/api.md: its sessions are real, every public name is on it, and it names nothing that is not there."""

from __future__ import annotations

import doctest
import inspect
import re

import pytest

import ptxmm as mm
from tests.support import ROOT

PATH = ROOT / "docs" / "api.md"
PAGE = PATH.read_text(encoding="utf-8")
CODE = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"\w+")
COMMON = ("rows", "to_json", "to_pandas", "finding", "file", "test", "model", "status", "notes", "seconds")
"""What the page says once of all results."""


def section(title: str) -> str:
    """The text under a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def named(text: str) -> set[str]:
    """The names in the code of a text."""
    return {word for code in CODE.findall(text) for word in _NAME.findall(code)}


def members(kind: type) -> set[str]:
    """What Tab shows of a class of ptxmm, without what it has from Python's own."""
    inherited = {name for base in kind.__mro__ if base.__module__ in ("builtins", "enum") for name in dir(base)}
    return {name for name in dir(kind) if not name.startswith("_")} - inherited


def test_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them in one namespace, one after the other."""
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(PATH), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert failed == 0 and tried > 20


@pytest.mark.parametrize("name", mm.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"(?:`|^### )mm\.{name}\b", PAGE, re.MULTILINE), name
    assert getattr(mm, name).__doc__, name


@pytest.mark.parametrize("name", [name for name in mm.__all__ if inspect.isclass(getattr(mm, name))])
def test_every_member_of_a_class_is_on_the_page(name: str) -> None:
    if name.endswith("Result") or name == "Listing":
        (text,) = re.findall(rf"^\| `mm\.{name}` \|.*$", PAGE, re.MULTILINE)
        known = named(text) | set(COMMON)
    else:
        known = named(section(f"mm.{name}"))
    assert members(getattr(mm, name)) <= known


def test_the_library_is_on_the_page() -> None:
    assert members(type(mm.library)) <= named(section("mm.library"))


def test_errors_are_on_the_page() -> None:
    assert vars(mm.PtxmmError("x")).keys() <= named(section("mm.PtxmmError"))


def test_the_page_names_only_what_is_there() -> None:
    """Names of the package, and the members that stand in the tables of a class."""
    assert set(re.findall(r"\bmm\.(\w+)", PAGE)) <= set(dir(mm))
    for title in re.findall(r"^### mm\.(\w+)$", PAGE, re.MULTILINE):
        kind = getattr(mm, title)
        kind = kind if inspect.isclass(kind) else type(kind)
        have = {*dir(kind), *(vars(kind("x")) if kind is mm.PtxmmError else ())}
        for row in re.findall(r"^\| (`.*?) \|", section(f"mm.{title}"), re.MULTILINE):
            for code in CODE.findall(row):
                own = _NAME.match(code)
                assert own is not None and (own[0] in have or own[0] == "str"), f"{title}: {code}"


def test_the_parameters_of_methods_are_those_of_the_code() -> None:
    for code in re.findall(r"^\| `(\w+\([^`]*\))`", section("mm.Test"), re.MULTILINE):
        name, _, rest = code.partition("(")
        said = re.findall(r"\w+", rest)
        parameters = [p for p in inspect.signature(getattr(mm.Test, name)).parameters if p != "self"]
        assert said == [p for p in parameters if p not in ("unroll", "timeout")], name
