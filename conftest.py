"""Golden files: what users see, kept as text. ``pytest --update-golden`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "tests" / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--update-golden`` writes the golden files instead of comparing with them."""
    parser.addoption("--update-golden", action="store_true", default=False, help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text is that of the file ``tests/golden/name``."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
