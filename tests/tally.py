"""What a test run counts besides its tests; printed by conftest."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import Struct, field


class Tally(Struct):
    """Corpus rows that ran and that were skipped; notes such as how many random programs were compared; and what
    several tests count together."""

    rows_run: int = 0
    rows_skipped: int = 0
    notes: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


TALLY: pytest.StashKey[Tally] = pytest.StashKey()
