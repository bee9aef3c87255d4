"""What a shell can complete: models, their readings and rules (``ptxmm --install-completion``)."""

from __future__ import annotations

import os
from collections.abc import Iterator

_RULES_OF = "ptx-8.5"


def models(incomplete: str) -> list[str]:
    """The models that come with ptxmm, and model files and folders on the way to some."""
    from ptxmm.cat import index

    return [name for name in (*index().models, *_files(incomplete)) if name.startswith(incomplete)]


def readings(incomplete: str) -> list[str]:
    """Every ``KEY=VALUE`` that the models ask about."""
    from ptxmm.cat import index

    found = [f"{key}={value}" for key, reading in index().readings.items() for value in reading.values]
    return [item for item in found if item.startswith(incomplete)]


def rules(incomplete: str) -> list[str]:
    """The checks of the default model."""
    from ptxmm.cat import load

    return [axiom.name for axiom in load(_RULES_OF).axioms if axiom.name.startswith(incomplete)]


def _files(incomplete: str) -> Iterator[str]:
    folder = os.path.dirname(incomplete)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = os.path.join(folder, entry.name)
        if entry.name.endswith(".cat"):
            yield name
        elif entry.is_dir() and not entry.name.startswith("."):
            yield name + os.sep
