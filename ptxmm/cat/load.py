"""Loading of models: the shipped ones by name, a user's own by path."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from ptxmm.cat import check, leave_out
from ptxmm.cat.ir import Coverage, Model
from ptxmm.cat.parser import MAX_CHARACTERS, parse
from ptxmm.cat.syntax import Include
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes

ALL_SCOPES = ("cta", "cluster", "gpu", "sys")
ALL_PROXIES = ("generic", "surface", "texture", "constant", "async", "tensormap")
WITHOUT = "without"
"""The key that stands among the readings of a model for what it leaves out: ``ptx-8.5[without=Causality+sync:2]``."""
_SHIPPED = Path(__file__).parent.parent / "models"


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
    data = tomllib.loads((_SHIPPED / "index.toml").read_text(encoding="utf-8"))
    models = {
        name: Shipped(
            entry["file"],
            Coverage(
                entry.get("isa"),
                tuple(entry["scopes"]),
                tuple(entry["proxies"]),
                entry["aliases"],
                entry["summary"],
                tuple(entry["instructions"]),
            ),
            entry.get("readings", {}),
        )
        for name, entry in data["models"].items()
    }
    readings = {
        key: Reading(tuple(entry["values"]), entry["section"], entry["text"], entry["about"], "told" in entry)
        for key, entry in data["readings"].items()
    }
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
    path = Path(name_or_path)
    if path.suffix != ".cat":
        close = difflib.get_close_matches(str(name_or_path), known.models, 1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        hint += f"models: {', '.join(known.models)}, or a file FILE.cat"
        raise PtxmmError(f"unknown model `{name_or_path}`", kind="usage", hint=hint)
    source = _read(path)
    coverage = Coverage(None, ALL_SCOPES, ALL_PROXIES, True, source.file.title or path.stem)
    return _build(path.stem, source, coverage, _included_defaults(source), chosen)


def parse_model(text: str, file: str = "<text>", readings: Mapping[str, str] | None = None) -> Model:
    """A model given as text; errors and defaults as for a file of the user's own."""
    text = text.removeprefix("\ufeff")
    source = check.Source(file, text, parse(text, file))
    coverage = Coverage(None, ALL_SCOPES, ALL_PROXIES, True, source.file.title or file)
    return _build(Path(file).stem, source, coverage, _included_defaults(source), dict(readings or {}))


def _included_defaults(source: check.Source) -> dict[str, str]:
    """The readings of which a shipped model that ``source`` includes changes the default: they are its defaults too."""
    shipped = {str(_SHIPPED / model.file): model.readings for model in index().models.values()}
    found: dict[str, str] = {}
    for path in texts_of(source):
        found |= shipped.get(path, {})
    return found


@cache
def _load_shipped(name: str, readings: tuple[tuple[str, str], ...]) -> Model:
    shipped = index().models[name]
    source = _read_shipped(shipped.file)
    return _build(name, source, shipped.coverage, shipped.readings, dict(readings))


def _build(
    name: str, source: check.Source, coverage: Coverage, own: Mapping[str, str], chosen: dict[str, str]
) -> Model:
    legal = {key: reading.values for key, reading in index().readings.items()}
    for key, value in chosen.items():
        if key in legal and value not in legal[key]:
            hint = f"values: {', '.join(legal[key])}"
            raise PtxmmError(f"reading `{key}` has no value `{value}`", kind="usage", hint=hint)
    readings = {key: values[0] for key, values in legal.items()} | dict(own) | chosen
    resolved = check.resolve(source, readings, legal, _include)
    left_out, texts = _leave_out(source, chosen.get(WITHOUT), resolved)
    if left_out:
        changed = texts[source.path]
        resolved = check.resolve(changed, readings, legal, lambda name, path: _of(texts, _include(name, path)))
    for key in chosen:
        if key != WITHOUT and key not in legal and key not in resolved.reading_keys:
            keys = sorted({*legal, *resolved.reading_keys})
            close = difflib.get_close_matches(key, keys, 1)
            hint = (f"did you mean `{close[0]}`? " if close else "") + f"readings: {', '.join(keys)}"
            raise PtxmmError(f"unknown reading `{key}`", kind="usage", hint=hint)
    return Model(
        name=name,
        title=source.file.title or name,
        path=source.path,
        definitions=resolved.definitions,
        axioms=resolved.axioms,
        nodes=resolved.nodes,
        readings=readings,
        reading_keys=resolved.reading_keys,
        coverage=coverage,
        defaults={key: values[0] for key, values in legal.items()} | dict(own),
        left_out=left_out,
        warnings=tuple(_warning(w) for w in resolved.warnings if Path(w.file or "").parent != _SHIPPED),
    )


def _warning(found: PtxmmError) -> str:
    return str(found).replace(": error: ", ": warning: ", 1)


def texts_of(source: check.Source) -> dict[str, check.Source]:
    """``source`` and all that it includes, by their paths; what can't be read is left out."""
    found, todo = {source.path: source}, [source]
    while todo:
        item = todo.pop()
        for statement in item.file.statements:
            if isinstance(statement, Include):
                try:
                    included = _include(statement.file, item.path)
                except PtxmmError:
                    continue  # reported, with its place, where the names of the model are resolved
                if included.path not in found and len(found) <= check.MAX_INCLUDES:
                    found[included.path] = included
                    todo.append(included)
    return found


def _of(texts: Mapping[str, check.Source], source: check.Source) -> check.Source:
    return texts.get(source.path, source)


def _leave_out(
    source: check.Source, wanted: str | None, resolved: check.Resolved
) -> tuple[tuple[str, ...], dict[str, check.Source]]:
    """What is left out of ``wanted``, and the texts without it, by their paths."""
    if wanted is None:
        return (), {}
    texts = texts_of(source)
    is_set = {name: node.is_set for name, node in resolved.definitions.items()}
    done: list[str] = []
    for path, item in list(texts.items()):
        known = leave_out.parts(item.text)
        found = [part for item_ in wanted.split(leave_out.SEPARATOR) for part in leave_out.found_in(item_, known)]
        here = list(dict.fromkeys(found))
        if here:
            text = leave_out.changed(item.text, here, is_set)
            texts[path] = check.Source(path, text, parse(text, path))
            done += here
    return tuple(done), texts


def left_out_of(name_or_path: str, items: Sequence[str], strict: bool = True) -> str:
    """The model without ``items`` (``NAME`` of a check, ``NAME:DISJUNCT`` of a definition, by its number or its text),
    in one text as ``load`` takes it. Raises ``PtxmmError``: kind ``usage`` for an item that is not there, which makes
    no difference if not ``strict``; and what ``load`` raises."""
    name, readings = split_specification(name_or_path)
    load(name)
    known = [leave_out.parts(item.text) for item in texts_of(_source(name)).values()]
    canonical = []
    for item in items:
        found = [part for text in known for part in leave_out.found_in(item, text)]
        if not found and strict:
            raise leave_out.missing(item, name, known)
        canonical += found
    before = [readings[WITHOUT]] if WITHOUT in readings else []
    joined = leave_out.SEPARATOR.join(dict.fromkeys([*before, *canonical]))
    return specification(name, readings | {WITHOUT: joined}) if joined else name_or_path


def text_of(name_or_path: str) -> str:
    """The text of a model. Where something is left out of it, an included file that this changes stands in the place
    of its ``include``. Raises as ``load`` does."""
    name, readings = split_specification(name_or_path)
    model = load(name_or_path)
    source = _source(name)
    if not model.left_out:
        return source.text
    before = texts_of(source)
    texts = _leave_out(source, readings[WITHOUT], check.resolve(source, model.readings, {}, _include))[1]
    text = texts[source.path].text
    for path, item in texts.items():
        if path != source.path and item.text != before[path].text:
            include = re.compile(rf'(?m)^include "{re.escape(Path(path).name)}"$')
            text = include.sub(lambda _, item=item: item.text.rstrip("\n"), text)  # type: ignore[misc]
    return f"(* without {', '.join(model.left_out)} *)\n{text}"


def _source(name: str) -> check.Source:
    shipped = index().models.get(name)
    return _read(Path(name)) if shipped is None else _read_shipped(shipped.file)


def _include(name: str, from_path: str) -> check.Source:
    """An included file: beside the including one, else a shipped one."""
    if Path(name).suffix != ".cat":
        raise PtxmmError(f"`{name}` is not a .cat file", kind="model")
    beside = Path(from_path).parent / name
    if beside.is_file():
        return _read_shipped(beside.name) if beside.parent == _SHIPPED else _read(beside)
    if Path(name).name == name and (_SHIPPED / name).is_file():
        return _read_shipped(name)
    raise PtxmmError(
        f"there is no model file `{name}`", kind="model", hint="includes are looked up beside the file, then in ptxmm"
    )


@cache
def _read_shipped(file: str) -> check.Source:
    return _read(_SHIPPED / file)


def _read(path: Path) -> check.Source:
    file = str(path)
    try:
        text = read_bytes(path, 4 * MAX_CHARACTERS).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PtxmmError(f"not UTF-8 text (byte {error.start})", kind="io", file=file) from None
    return check.Source(file, text, parse(text, file))
