"""How long users of the playground wait: ``python -m tests.benchmarks.playground``.

By the clock of headless Chromium on this machine, with the server and without: until the first verdict is on the page
after it was asked for, by a browser that was never there before, and from the move of a slider to the verdict that it
brings, on litmus tests of several families.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from ptxmm.web.site import site
from tests.benchmarks.speed import ROOT
from tests.playground_page import CHROMIUM
from tests.playground_server import server
from tests.playground_site import serving, written

LOADS, MOVES = 5, 9
TESTS = (
    "mp/MP+rel+acq",
    "sb/SB+fence.sc",
    "wrc/*",
    "iriw/IRIW+fence.sc",
    "isa2/*",
    "mbarrier/MP+arrive+wait",
    "bugs/cccl*buggy",
)
FIRST = """() => new Promise((done) => {
    const there = () => document.querySelector("#verdict[data-kind]");
    const look = () => there() ? done(performance.now()) : requestAnimationFrame(look);
    look();
})"""
OPEN = """async (base) => {
    location.hash = await (await import("/page/link.js")).packed({base});
}"""
MOVE = """() => new Promise((done) => {
    const place = document.querySelector("#verdict-text");
    const slider = [...document.querySelectorAll("#dials fieldset input")].find((input) => !input.disabled);
    const start = performance.now();
    new MutationObserver((_, watch) => (watch.disconnect(), done(performance.now() - start)))
        .observe(place, {childList: true});
    slider.value = slider.value === slider.max ? slider.min : slider.max;
    slider.dispatchEvent(new Event("input"));
})"""


def main() -> None:
    """Print the median and the worst of each, in milliseconds."""
    with server() as (port, _):
        measured("server", f"http://127.0.0.1:{port}/")
    with tempfile.TemporaryDirectory() as folder, serving(written(site(ROOT / "litmus"), Path(folder))) as address:
        measured("site", address)


def measured(where: str, address: str) -> None:
    """Print how long users wait at ``address``."""
    with sync_playwright() as tool:

        def launched() -> Any:
            return tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        told(f"{where}: first verdict", [_load(launched(), address) for _ in range(LOADS)])
        browser = launched()
        page = browser.new_page()
        page.goto(address)
        for name in TESTS:
            path = sorted((ROOT / "litmus").glob(f"{name}.litmus"))[0]
            page.locator("#why .lead").wait_for()
            page.evaluate(OPEN, path.read_text(encoding="utf-8"))
            page.locator("#verdict-text").get_by_text("state").first.wait_for()
            page.wait_for_timeout(1500)
            told(f"{where}: slider, {path.stem}", [_move(page) for _ in range(MOVES)])
        browser.close()


def _load(browser: Any, address: str) -> float:
    """The first verdict in a new browser, which has kept nothing."""
    page = browser.new_page()
    page.goto(address, wait_until="commit")
    found: float = page.evaluate(FIRST)
    browser.close()
    return found


def _move(page: Any) -> float:
    found: float = page.evaluate(MOVE)
    page.wait_for_timeout(1200)  # the explanation that follows is none of it
    return found


def told(what: str, found: list[float]) -> None:
    print(f"{what:44} median {statistics.median(found):5.0f} ms, worst {max(found):5.0f} ms", flush=True)


if __name__ == "__main__":
    main()
