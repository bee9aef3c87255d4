"""From the text of a model to the model: includes, readings, what is left out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from ptxmm.cat import check, leave_out
from ptxmm.cat.ir import Coverage, Model, Written
from ptxmm.cat.parser import MAX_CHARACTERS, parse, without_comments
from ptxmm.cat.reader import tokens
from ptxmm.cat.shipped import SHIPPED, WITHOUT, index
from ptxmm.cat.syntax import Include
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes

ALL_SCOPES = ("cta", "cluster", "gpu", "sys")
ALL_PROXIES = ("generic", "surface", "texture", "constant", "async", "tensormap")


def shipped(name: str, readings: dict[str, str]) -> Model:
    """The shipped model of that name. Raises ``PtxmmError`` for readings, as ``load`` does."""
    found = index().models[name]
    return _build(name, _read_shipped(found.file), found.coverage, found.readings, readings)


def own(path: Path, readings: dict[str, str]) -> Model:
    """The model in a file whose name ends in ``.cat``. Raises ``PtxmmError`` as ``load`` does."""
    if path.suffix != ".cat":
        known = index().models
        close = difflib.get_close_matches(str(path), known, 1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        hint += f"models: {', '.join(known)}, or a file FILE.cat"
        raise PtxmmError(f"unknown model `{path}`", kind="usage", hint=hint)
    source = _read(path)
    coverage = Coverage(None, ALL_SCOPES, ALL_PROXIES, True, source.file.title or path.stem)
    return _build(path.stem, source, coverage, _included_defaults(source), readings)


def given(text: str, file: str, readings: dict[str, str]) -> Model:
    """The model that is ``text``. Raises ``PtxmmError`` as ``load`` does."""
    text = text.removeprefix("\ufeff")
    source = check.Source(file, text, parse(text, file))
    coverage = Coverage(None, ALL_SCOPES, ALL_PROXIES, True, source.file.title or file)
    return _build(Path(file).stem, source, coverage, _included_defaults(source), readings)


def _included_defaults(source: check.Source) -> dict[str, str]:
    """The readings of which a shipped model that ``source`` includes changes the default: they are its defaults too."""
    shipped = {str(SHIPPED / model.file): model.readings for model in index().models.values()}
    found: dict[str, str] = {}
    for path in texts_of(source):
        found |= shipped.get(path, {})
    return found


def _build(
    name: str, source: check.Source, coverage: Coverage, own: Mapping[str, str], chosen: dict[str, str]
) -> Model:
    legal = {key: reading.values for key, reading in index().readings.items()}
    for key, value in chosen.items():
        if key in legal and value not in legal[key]:
            hint = f"values: {', '.join(legal[key])}"
            raise PtxmmError(f"reading `{key}` has no value `{value}`", kind="usage", hint=hint)
    readings = {key: values[0] for key, values in legal.items()} | dict(own) | chosen
    wanted = chosen.get(WITHOUT)
    if wanted is None or Path(source.path).parent != SHIPPED:
        resolved = check.resolve(source, readings, legal, _include)
    else:  # much is left out of it, one thing after the other
        rest = tuple((key, value) for key, value in readings.items() if key != WITHOUT)
        resolved = _resolved_shipped(Path(source.path).name, rest)
    left_out, texts = _leave_out(source, wanted, resolved)
    if not left_out:
        texts = texts_of(source)
    else:
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
        # An included text comes before what includes it.
        written=_written(reversed(texts.values())),
        warnings=tuple(_warning(w) for w in resolved.warnings if Path(w.file or "").parent != SHIPPED),
    )


@lru_cache(maxsize=8)
def _resolved_shipped(file: str, readings: tuple[tuple[str, str], ...]) -> check.Resolved:
    legal = {key: reading.values for key, reading in index().readings.items()}
    return check.resolve(_read_shipped(file), dict(readings), legal, _include)


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


def parts(name: str, items: Sequence[str], strict: bool) -> list[str]:
    """The names of the parts of a model that ``items`` name. Raises ``PtxmmError`` (kind ``usage``) for an item that
    is not there, if ``strict``."""
    known = [leave_out.parts(item.text) for item in texts_of(source_of(name)).values()]
    canonical = []
    for item in items:
        found = [part for text in known for part in leave_out.found_in(item, text)]
        if not found and strict:
            raise leave_out.missing(item, name, known)
        canonical += found
    return canonical


def disjunctions(name: str) -> dict[str, dict[str, str]]:
    """The definitions of a model that are disjunctions, those of included texts first."""
    texts = reversed(texts_of(source_of(name)).values())
    return leave_out.disjunctions(leave_out.parts(item.text) for item in texts)


def printed(name: str, model: Model, wanted: str | None) -> str:
    """The text of ``model``, which is that of ``name`` without what is ``wanted`` left out."""
    source = source_of(name)
    if not model.left_out:
        return source.text
    before = texts_of(source)
    texts = _leave_out(source, wanted, check.resolve(source, model.readings, {}, _include))[1]
    text = texts[source.path].text
    for path, item in texts.items():
        if path != source.path and item.text != before[path].text:
            include = re.compile(rf'(?m)^include "{re.escape(Path(path).name)}"$')
            text = include.sub(lambda _, item=item: item.text.rstrip("\n"), text)  # type: ignore[misc]
    return f"(* without {', '.join(model.left_out)} *)\n{text}"


def source_of(name: str) -> check.Source:
    """The text of the model of that name, or in the file of that path."""
    shipped = index().models.get(name)
    return _read(Path(name)) if shipped is None else _read_shipped(shipped.file)


def _include(name: str, from_path: str) -> check.Source:
    """An included file: beside the including one, else a shipped one."""
    if Path(name).suffix != ".cat":
        raise PtxmmError(f"`{name}` is not a .cat file", kind="model")
    beside = Path(from_path).parent / name
    if beside.is_file():
        return _read_shipped(beside.name) if beside.parent == SHIPPED else _read(beside)
    if Path(name).name == name and (SHIPPED / name).is_file():
        return _read_shipped(name)
    raise PtxmmError(
        f"there is no model file `{name}`", kind="model", hint="includes are looked up beside the file, then in ptxmm"
    )


@cache
def _read_shipped(file: str) -> check.Source:
    return _read(SHIPPED / file)


def _read(path: Path) -> check.Source:
    file = str(path)
    try:
        text = read_bytes(path, 4 * MAX_CHARACTERS).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PtxmmError(f"not UTF-8 text (byte {error.start})", kind="io", file=file) from None
    return check.Source(file, text, parse(text, file))


def _written(sources: Iterable[check.Source]) -> dict[str, Written]:
    """The last statement that defines each name or makes each named check, of ``sources`` in the order in which their
    statements count, which were parsed without an error."""
    return {name: found for source in sources for name, found in _statements(source.path, source.text).items()}


@lru_cache(maxsize=64)
def _statements(path: str, text: str) -> Mapping[str, Written]:
    """The same of the text of one file, which most models have in common."""
    return dict(_names(path, without_comments(text)[1]))


def _names(path: str, clean: str) -> Iterator[tuple[str, Written]]:
    found = tokens(clean) or []
    for first, last in leave_out.statements_of(found):
        text = " ".join(clean[found[first].start_pos : found[last - 1].end_pos].split())
        statement = Written(path, clean.count("\n", 0, found[first].start_pos) + 1, text)
        kinds = [token.type for token in found[first:last]]
        if kinds[0] in ("FLAG", "CHECK") and kinds[-2] == "as":
            yield str(found[last - 1]), statement
        elif "let" in kinds[:2] or "LETREC" in kinds[:2]:
            start = next(i for i, kind in enumerate(kinds) if kind in ("let", "LETREC"))
            for name, _, _ in leave_out.definitions_of(found, first + start + 1, last):
                yield name, statement
