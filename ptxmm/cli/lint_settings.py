"""The settings of ``ptxmm lint``: the command line over ``ptxmm.toml`` or ``pyproject.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptxmm.analysis.lint.analysis import Options, chosen, rule_ids
from ptxmm.cli.settings import version
from ptxmm.errors import PtxmmError
from ptxmm.files import NotToml, read_bytes, toml

_KEYS = ("select", "enable", "disable", "isa", "arch", "exclude")


def options(
    select: list[str] | None,
    enable: list[str] | None,
    disable: list[str] | None,
    isa: tuple[int, int] | None,
    arch: int | None,
) -> tuple[Options, tuple[str, ...]]:
    """What to look for, and the patterns of files to leave out of folders.

    A rule that the command line enables or disables is so, whatever the settings say; its ``--select`` takes the place
    of theirs. Raises ``PtxmmError`` (kinds ``usage``, ``format``).
    """
    file, settings = _settings(Path.cwd())
    for key in settings:
        if key not in _KEYS:
            hint = f"the keys are {', '.join(_KEYS)}"
            raise PtxmmError(f"[lint] has no key `{key}`", kind="format", file=str(file), hint=hint)
    lists = {key: _names(settings, key, file) for key in ("select", "enable", "disable", "exclude")}
    texts = {key: _text(settings, key, file) for key in ("isa", "arch")}
    wanted = rule_ids([*(enable or ()), *(select or ())])
    off = tuple(sorted(rule_ids(lists["disable"]) - wanted))
    made = Options(
        select=tuple(select) if select else lists["select"],
        enable=(*lists["enable"], *(enable or ())) if not select else tuple(enable or ()),
        disable=(*off, *(disable or ())),
        isa=isa or version(texts["isa"]),
        arch=arch if arch is not None else architecture(texts["arch"]),
    )
    chosen(made)  # a wrong name is an error of the command line, not of each file
    return made, lists["exclude"]


def architecture(text: str | None) -> int | None:
    """The number of a target: 90 for ``sm_90``, ``sm_90a``, ``compute_90``, ``90``. Raises ``PtxmmError`` (usage)."""
    if text is None:
        return None
    hit = re.fullmatch(r"(?:sm_|compute_)?([0-9]{2,3})[af]?", text)
    if hit is None:
        raise PtxmmError(f"--arch {text}: not a target", kind="usage", hint="e.g. --arch sm_90")
    return int(hit[1])


def _settings(folder: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """The table of the nearest file that has one, from ``folder`` upwards."""
    for place in (folder, *folder.parents):
        for name, keys in (("ptxmm.toml", ("lint",)), ("pyproject.toml", ("tool", "ptxmm", "lint"))):
            file = place / name
            if not file.is_file():
                continue
            try:
                table: Any = toml(read_bytes(file).decode("utf-8"))
            except (UnicodeDecodeError, NotToml) as error:
                raise PtxmmError(f"not read: {error}", kind="format", file=str(file)) from error
            for key in keys:
                table = table.get(key) if isinstance(table, dict) else None
            if isinstance(table, dict):
                return file, table
    return None, {}


def _names(settings: Mapping[str, Any], key: str, file: Path | None) -> tuple[str, ...]:
    value = settings.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PtxmmError(f"`{key}` is a list of texts", kind="format", file=str(file))
    return tuple(value)


def _text(settings: Mapping[str, Any], key: str, file: Path | None) -> str | None:
    value = settings.get(key)
    if value is not None and not isinstance(value, str):
        example = "9.0" if key == "isa" else "sm_90"
        raise PtxmmError(f'`{key}` is a text, such as "{example}"', kind="format", file=str(file))
    return value
