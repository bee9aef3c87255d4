"""Loading of models: the shipped ones by name, a user's own by path. Texts are read where that has to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ptxmm.cat.ir import Model
from ptxmm.cat.shipped import WITHOUT, index, kept, specification, split_specification


def load(name_or_path: str | Path, readings: Mapping[str, str] | None = None) -> Model:
    """The model of that name (``ptx-8.5``), or the one in a file whose name ends in ``.cat``.

    The name may have readings (``ptx-8.5[dep=syn]``). ``readings`` overrides those and the defaults. Among them
    ``without`` names checks and disjuncts to leave out, as far as the model has them (``Model.left_out``). Raises
    ``PtxmmError``: kind ``usage`` for an unknown model, reading key or value, ``io`` for a file that can't be read,
    ``model`` for a wrong text.
    """
    chosen: dict[str, str] = {}
    if isinstance(name_or_path, str):
        name_or_path, chosen = split_specification(name_or_path)
    chosen |= readings or {}
    known = index()
    shipped = known.models.get(str(name_or_path))
    if shipped is not None:
        return _load_shipped(str(name_or_path), tuple(sorted(chosen.items())))
    from ptxmm.cat import texts

    return texts.own(Path(name_or_path), chosen)


@cache
def _load_shipped(name: str, readings: tuple[tuple[str, str], ...]) -> Model:
    def make() -> Model:
        from ptxmm.cat import texts

        return texts.shipped(name, dict(readings))

    return make() if readings else kept(name, make)


def parse_model(text: str, file: str = "<text>", readings: Mapping[str, str] | None = None) -> Model:
    """A model given as text; errors and defaults as for a file of the user's own."""
    from ptxmm.cat import texts

    return texts.given(text, file, dict(readings or {}))


def left_out_of(name_or_path: str, items: Sequence[str], strict: bool = True) -> str:
    """The model without ``items`` (``NAME`` of a check, ``NAME:DISJUNCT`` of a definition, by its number or its text),
    in one text as ``load`` takes it. Raises ``PtxmmError``: kind ``usage`` for an item that is not there, which makes
    no difference if not ``strict``; and what ``load`` raises."""
    from ptxmm.cat import leave_out, texts

    name, readings = split_specification(name_or_path)
    load(name)
    before = [readings[WITHOUT]] if WITHOUT in readings else []
    joined = leave_out.SEPARATOR.join(dict.fromkeys([*before, *texts.parts(name, items, strict)]))
    return specification(name, readings | {WITHOUT: joined}) if joined else name_or_path


def disjunctions_of(name: str) -> dict[str, dict[str, str]]:
    """The definitions of a model that are disjunctions, each with its disjuncts: their text by what ``left_out_of``
    takes for them (``sync:2``). Raises as ``load`` does."""
    from ptxmm.cat import texts

    return texts.disjunctions(name)


def text_of(name_or_path: str) -> str:
    """The text of a model. Where something is left out of it, an included file that this changes stands in the place
    of its ``include``. Raises as ``load`` does."""
    from ptxmm.cat import texts

    name, readings = split_specification(name_or_path)
    return texts.printed(name, load(name_or_path), readings.get(WITHOUT))


def texts_of(name_or_path: str) -> list[str]:
    """The texts of a model and of all that it includes. Raises as ``load`` does."""
    from ptxmm.cat import texts

    load(name_or_path)
    return sorted(
        source.text for source in texts.texts_of(texts.source_of(split_specification(name_or_path)[0])).values()
    )
