"""Models by name, and models without some of their checks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ptxmm import cat
from ptxmm.cat.shipped import SHIPPED
from ptxmm.program.test import Test
from ptxmm.render.document import taken

ModelName = cat.Model | str | Path
"""A model, or what names one: ``ptx-8.5``, ``ptx-8.5[dep=syn]``, the path of a file ``.cat``."""


class Model(cat.Model, frozen=True, eq=False):
    __doc__ = cat.Model.__doc__

    @property
    def specification(self) -> str:
        """What ``--model`` takes for it: ``ptx-8.5[dep=syn]``."""
        return _specification(self)

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of its checks, flags left out: what ``without`` takes."""
        return tuple(axiom.name for axiom in self.axioms if not axiom.flag)

    def without(self, *items: str) -> Model:
        """The same model without ``items``: checks by their names (``Causality``), disjuncts of definitions by number
        or text (``sync:2``). Raises ``PtxmmError`` (kind ``usage``) for an item that it does not have."""
        return model(cat.left_out_of(self.specification, items))

    def __str__(self) -> str:
        """The text of the model."""
        return cat.text_of(self.specification)

    def __repr__(self) -> str:
        return f"Model({self.specification!r})"


def model(name_or_path: ModelName, readings: Mapping[str, str] | None = None) -> Model:
    """The model of that name (``ptx-8.5``), or the one in a file whose name ends in ``.cat``.

    The name may have readings (``ptx-8.5[dep=syn]``). ``readings`` overrides those and the defaults. Raises
    ``PtxmmError``: kind ``usage`` for an unknown model, reading key or value, ``io`` for a file that can't be read,
    ``model`` for a wrong text.
    """
    if isinstance(name_or_path, cat.Model):
        name_or_path = _specification(name_or_path)
    found = cat.load(name_or_path, readings)
    return _shipped(found) if _is_shipped(found) else _of(found)


@cache
def _shipped(found: cat.Model) -> Model:
    return _of(found)


def _of(found: cat.Model) -> Model:
    return taken(Model, found)


def _is_shipped(found: cat.Model) -> bool:
    return Path(found.path).parent == SHIPPED


def _specification(found: cat.Model) -> str:
    chosen = {key: value for key, value in found.readings.items() if found.defaults.get(key) != value}
    return cat.specification(found.name if _is_shipped(found) else found.path, chosen)


def named(name: ModelName, test: Test | None = None) -> tuple[str, cat.Model]:
    """What results call a model, and the model; one that is named, with the readings that the launch of ``test``
    assumes. Raises as ``model``."""
    from ptxmm.analysis.claims import assumed_of

    if isinstance(name, cat.Model):
        return _specification(name), name
    wanted = str(name) if test is None else assumed_of(test, str(name))
    return wanted, cat.load(wanted)


load_model = model
