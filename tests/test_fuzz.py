"""Whatever the input, a check ends soon, in a result that both engines agree on or in a ``PtxmmError``."""

from __future__ import annotations

import random
import re
import time
from functools import cache

import pytest

from ptxmm import formats
from ptxmm.analysis.expectation import expectation_for, expectations
from ptxmm.analysis.outcomes import check
from ptxmm.cat import Model, index, parse_model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.render.document import document
from ptxmm.render.style import Style
from ptxmm.render.text import table
from tests.support import CORPORA, ROOT, model_named

SECONDS = 2.0
_TOKEN = re.compile(r"\.?[A-Za-z_0-9%]+|\S|\s+")
_TOKENS = """
.relaxed .acquire .release .weak .volatile .mmio .cta .cluster .gpu .sys .u8 .u16 .u32 .u64 .s32 .s64 .b32 .b64
.global .shared add cas exch min max inc dec and or xor ld st atom red bra ret exit membar fence bar x y z p q r0 r1 r2
0 1 2 64 -1 0xffffffff 18446744073709551615 & + @ ! : ; | [ ] ( ) { } , == != < >= = ~ exists forall filter locations
cta warp cluster gpu host P0 P1 generic surface aliases Expect never always undefined
"""
_INSTRUCTION = re.compile(
    r"(@!?%?\w+ +)?(ld|st|atom|red|fence|membar|bar|barrier|mov|add|sub|mul|and|or|xor|setp|selp|shl|shr|cvt|bra|ret)\b"
    r"[^()=]*"
)
_CAT = """
| & ; \\ * + ? ^-1 ~ ( ) [ ] let rec and acyclic irreflexive empty flag as if then else include _ id 0 emptyset
po rf co fr fsc R W M IW FSC E loc ext int rmw domain range data ctrl addr " (* *)
"""


@cache
def files() -> list[str]:
    """Texts of real tests."""
    paths = [*(ROOT / "litmus").rglob("*.litmus"), *CORPORA.rglob("dartagnan/**/*.litmus")]
    return [path.read_text(encoding="utf-8") for path in sorted(paths)]


@cache
def instructions() -> list[str]:
    """Instructions of real tests."""
    cells = {cell.strip() for text in files() for cell in re.split(r"[|;\n{}]", text)}
    return sorted(cell for cell in cells if _INSTRUCTION.fullmatch(cell))


def tokens_changed(text: str, rng: random.Random, vocabulary: str) -> str:
    """``text`` with one to three tokens replaced, mostly by one of their kind."""
    tokens = vocabulary.split()
    found = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.choice([i for i, token in enumerate(found) if not token.isspace()])
        alike = [t for t in (*tokens, *found) if _shape(t) == _shape(found[at])]
        found[at] = rng.choice(alike if rng.random() < 0.8 else ["", *tokens])
    return "".join(found)


def _shape(token: str) -> tuple[bool, bool, bool]:
    return token[:1] == ".", token[:1].isalpha(), token[:1].isdigit()


def instructions_changed(text: str, rng: random.Random) -> str:
    """``text`` with one to three instructions replaced."""
    parts = re.split(r"([|;\n])", text)
    cells = [i for i, part in enumerate(parts) if _INSTRUCTION.fullmatch(part.strip())]
    for at in rng.choices(cells, k=rng.randint(1, 3)) if cells else ():
        parts[at] = f" {rng.choice(instructions())} "
    return "".join(parts)


def model_changed(rng: random.Random) -> Model:
    """A shipped model with some tokens replaced."""
    shipped = rng.choice(list(index().models))
    text = (ROOT / "ptxmm" / "models" / f"{shipped}.cat").read_text(encoding="utf-8")
    return parse_model(tokens_changed(text, rng, _CAT), f"{shipped}.cat")


def run(rng: random.Random) -> None:
    """One input. A failure shows it."""
    change = rng.random()
    text = rng.choice(files())
    if change < 0.5:
        text = instructions_changed(text, rng)
    elif change < 0.9:
        text = tokens_changed(text, rng, _TOKENS)
    try:
        (test,) = formats.parse(text, "t.litmus")
        model = model_named(test.default_model) if change < 0.9 else model_changed(rng)
        expected = expectation_for(test, model.name, expectations(test, index().models))
        limits = Limits(2, time.monotonic() + SECONDS)
        result = check(test, model, engine="both", limits=limits, expectation=expected, all_state=rng.random() < 0.5)
        assert document([result]) and table(result, Style(False))
    except PtxmmError as error:
        assert error.kind != "internal", f"{error}\n{text}"
    except Exception as error:
        raise AssertionError(text) from error


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(4))
def test_changed_tests_and_models(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        run(rng)


@pytest.mark.slow
def test_changed_tests_and_models_in_full() -> None:
    rng = random.Random(20_000)
    for _ in range(8_000):
        run(rng)
