"""The words of the name of a function."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_COMPOUND = {"acqrel": "acq_rel"}


def parts(name: str) -> tuple[str, ...]:
    """The words that ``name`` consists of in lower case, in their order."""
    return tuple(part.lower() for part in _PART.findall(name))


@lru_cache(maxsize=4096)
def words(name: str) -> frozenset[str]:
    """The words that ``name`` consists of in lower case: ``ld_acquire_gpu`` and ``ldAcquireGpu`` have the same."""
    found = parts(name)
    pairs = {"acq_rel"} if any(pair == ("acq", "rel") for pair in pairwise(found)) else set()
    return frozenset(_COMPOUND.get(part, part) for part in found) | pairs
