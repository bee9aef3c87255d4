"""What a test run counts besides its tests; printed by conftest."""

from __future__ import annotations

import pytest
from msgspec import Struct, field


class Tally(Struct):
    """Corpus rows that ran and that were skipped; notes such as how many random programs were compared."""

    rows_run: int = 0
    rows_skipped: int = 0
    notes: list[str] = field(default_factory=list)


TALLY: pytest.StashKey[Tally] = pytest.StashKey()
