"""How long users of the playground wait: ``python -m tests.benchmarks.playground``.

By the clock of headless Chromium on this machine: until the first verdict is on the page after it was asked for, and
from the move of a slider to the verdict that it brings, on litmus tests of several families.
"""

from __future__ import annotations

import statistics
from typing import Any

from playwright.sync_api import sync_playwright

from tests.benchmarks.speed import ROOT
from tests.playground_server import server
from tests.test_playground_browser import CHROMIUM

LOADS, MOVES = 9, 9
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
    with server() as (port, _), sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        address = f"http://127.0.0.1:{port}/"
        told("first verdict", [_load(browser, address) for _ in range(LOADS)])
        for name in TESTS:
            path = sorted((ROOT / "litmus").glob(f"{name}.litmus"))[0]
            page = browser.new_page()
            page.goto(address)
            page.locator("#why .lead").wait_for()
            page.evaluate(OPEN, path.read_text(encoding="utf-8"))
            page.locator("#verdict-text").get_by_text("state").first.wait_for()
            page.wait_for_timeout(1500)
            told(f"slider, {path.stem}", [_move(page) for _ in range(MOVES)])
            page.close()


def _load(browser: Any, address: str) -> float:
    page = browser.new_page()
    page.goto(address, wait_until="commit")
    found: float = page.evaluate(FIRST)
    page.locator("#why .lead").wait_for()
    page.close()
    return found


def _move(page: Any) -> float:
    found: float = page.evaluate(MOVE)
    page.wait_for_timeout(1200)  # the explanation that follows is none of it
    return found


def told(what: str, found: list[float]) -> None:
    print(f"{what:40} median {statistics.median(found):5.0f} ms, worst {max(found):5.0f} ms", flush=True)


if __name__ == "__main__":
    main()
