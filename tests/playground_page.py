"""A page of the playground in headless Chromium, for tests.

The browser is that of the machine (``/usr/bin/chromium``, or ``PTXMM_CHROMIUM``): none is ever downloaded.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = os.environ.get("PTXMM_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
NEEDED = pytest.mark.skipif(not Path(CHROMIUM).is_file(), reason=f"there is no Chromium at {CHROMIUM}")
AXE = Path(__file__).parent / "axe" / "axe.min.js"
WIDE = {"width": 1280, "height": 900}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PATIENCE = 60_000
"""Milliseconds until a test gives up: a busy machine is slow."""

DRAWN = "let last = 7; Math.random = () => (last = last * 16807 % 2147483647) / 2147483647;"
"""Makes the questions of the quiz the same in every run."""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser."""
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def accessible(tab: Any, *but: str) -> None:
    """Let axe-core look at a page; ``but``: rules that are not asked of it."""
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"runOnly": RULES, "rules": {name: {"enabled": False} for name in but}}
    found = tab.evaluate("options => axe.run(options)", options)
    told = [(v["id"], v["help"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found["violations"]]
    assert found["passes"] and not told, json.dumps(told, indent=1)


class Page:
    """A page of the playground, and what it complained of."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(viewport=options.pop("viewport", WIDE), **options)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(PATIENCE)
        playwright.expect.set_options(timeout=PATIENCE)
        self.complaints: list[str] = []
        self.tab.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self._known(request.url, address))
        self.tab.goto(address)
        self.tab.locator("#model option").first.wait_for(state="attached")

    def _known(self, url: str, address: str) -> None:
        if not url.startswith((address, "blob:", "data:")):
            self.complaints.append(f"asks {url}")

    def verdict(self, word: str) -> None:
        """Wait until this is the verdict."""
        playwright.expect(self.tab.locator("#verdict-text .word")).to_contain_text(word)

    def why(self, text: str) -> None:
        """Wait until this is said of the chosen state."""
        playwright.expect(self.tab.locator("#why")).to_contain_text(text)

    def show(self, text: str) -> None:
        """Go to a link with a test."""
        base = "async (base) => { location.hash = await (await import('/page/link.js')).packed({base}); }"
        self.tab.evaluate(base, text)

    def slide(self, label: str, value: int) -> None:
        """Move a slider."""
        self.tab.get_by_label(label, exact=True).fill(str(value))

    def until(self, selector: str) -> None:
        """Press Tab until the focus is there."""
        for _ in range(90):
            self.tab.keyboard.press("Tab")
            if self.tab.evaluate("s => document.activeElement.matches(s)", selector):
                return
        raise AssertionError(f"the focus never comes to {selector}")

    def open(self, name: str) -> None:
        """Choose the first test of the gallery whose name has this in it."""
        self.tab.get_by_role("button", name="Gallery").click()
        self.tab.get_by_label("Search all tests").fill(name)
        self.tab.locator("#gallery .tests button").first.click()
        playwright.expect(self.tab.locator("#editor")).to_contain_text(name)

    def editor(self) -> str:
        """The text in the editor."""
        lines: list[str] = self.tab.locator("#editor .cm-line").all_inner_texts()
        return "\n".join(lines)

    def accessible(self) -> None:
        """Let axe-core look at the page as it is."""
        accessible(self.tab)
