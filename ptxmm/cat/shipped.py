"""What comes with ptxmm: the index of models and readings, and how both are kept from one process to the next."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source, source_hash
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, convert

from ptxmm.cat.ir import Coverage, Model
from ptxmm.errors import PtxmmError

T = TypeVar("T")

WITHOUT = "without"
"""The key that stands among the readings of a model for what it leaves out: ``ptx-8.5[without=Causality+sync:2]``."""
_PACKAGE = Path(__file__).parents[1]
SHIPPED = _PACKAGE / "models"


def is_shipped(model: Model) -> bool:
    """Whether the text of ``model`` is one that comes with ptxmm, with nothing left out."""
    return Path(model.path).parent == SHIPPED and not model.left_out


class Shipped(Struct, frozen=True):
    """An entry of ``models/index.toml``: the file, what it covers, and the readings it changes the default of."""

    file: str
    coverage: Coverage
    readings: Mapping[str, str]


class Reading(Struct, frozen=True):
    """A sentence of the PTX ISA that can be understood in several ways.

    ``values``: the ways, the default first; ``section`` and ``text``: the sentence; ``about``: what the values mean.
    ``told``: deployed programs rely on another value than the default, so that every answer says where it matters.
    """

    values: tuple[str, ...]
    section: str
    text: str
    about: str
    told: bool = False


class Index(Struct, frozen=True):
    """``models/index.toml``: the shipped models, the readings by key, the flags that leave a program undefined, and
    those of what a model does not cover, each with what that is."""

    models: Mapping[str, Shipped]
    readings: Mapping[str, Reading]
    undefined: frozenset[str]
    uncovered: Mapping[str, str]


@cache
def index() -> Index:
    """The shipped models and the reading keys."""
    return kept("index", _read_index)


def _read_index() -> Index:
    import tomllib  # which takes a while

    data = tomllib.loads((SHIPPED / "index.toml").read_text(encoding="utf-8"))
    models = {
        name: Shipped(entry["file"], convert({"isa": None} | entry, Coverage), entry.get("readings", {}))
        for name, entry in data["models"].items()
    }
    readings = convert(data["readings"], dict[str, Reading])
    return Index(models, readings, frozenset(data["undefined"]), data["uncovered"])


def specification(name: str, readings: Mapping[str, str]) -> str:
    """A model with readings in one text, as ``Expect=`` and ``--model`` take it: ``ptx-8.5[dep=syn,tear=off]``."""
    chosen = ",".join(f"{key}={value}" for key, value in sorted(readings.items()))
    return f"{name}[{chosen}]" if chosen else name


def split_specification(text: str) -> tuple[str, dict[str, str]]:
    """The name and the readings of a ``specification``. Raises ``PtxmmError`` (kind ``usage``) if it is malformed."""
    match = re.fullmatch(r"(.*)\[([^\[\]]*)\]", text)
    if match is None:
        return text, {}
    readings: dict[str, str] = {}
    for item in match[2].split(","):
        key, sign, value = (part.strip() for part in item.partition("="))
        if not (key and sign and value):
            hint = "readings are written ptx-8.5[key=value,key=value]"
            raise PtxmmError(f"`{item}` in `{text}` is not a reading", kind="usage", hint=hint)
        if readings.setdefault(key, value) != value:
            raise PtxmmError(f"two values of the reading `{key}` in `{text}`", kind="usage")
    return match[1], readings


def kept(name: str, make: Callable[[], T]) -> T:
    """What ``make`` gives, or gave to an earlier process with the same sources, which kept it where Python keeps the
    bytecode of modules, if it may."""
    path = cache_from_source(str(SHIPPED / f"{name}.cat")).removesuffix("pyc") + "pickle"
    with suppress(Exception):  # it is not there, or no longer what it was
        kept = Path(path).read_bytes()
        if kept.startswith(_sources()):
            found: T = pickle.loads(kept[len(_sources()) :])
            return found
    made = make()
    if not sys.dont_write_bytecode:
        SourceFileLoader(name, path).set_data(path, _sources() + pickle.dumps(made))
    return made


@cache
def _sources() -> bytes:
    """A hash of all that a shipped model is made of and by."""
    files = (*SHIPPED.glob("*.*"), *_PACKAGE.glob("cat/*.py"), _PACKAGE / "errors.py")
    return source_hash(b"".join((str(SHIPPED).encode(), *(file.read_bytes() for file in sorted(files)))))
