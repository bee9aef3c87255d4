"""What is read by hand is what Lark reads by the grammars: PTX statements, and models.

Where a reader by hand refuses a text, Lark reads it and says what is wrong: so errors have one place and one wording.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ptxmm.cat import parser as cat_parser
from ptxmm.cat import reader as cat_reader
from ptxmm.cat.syntax_errors import _grammar as model_grammar
from ptxmm.cat.syntax_errors import parsed as parsed_model
from ptxmm.errors import PtxmmError
from ptxmm.ptx import reader as ptx_reader
from ptxmm.ptx.origin import Origin
from ptxmm.ptx.syntax_errors import _lark as thread_grammar
from ptxmm.ptx.syntax_errors import parsed as parsed_thread
from tests.random_families import NAMES
from tests.random_families import seeded as family_program
from tests.random_programs import seeded
from tests.sentences import Sentences

MODELS = sorted((Path(__file__).resolve().parent.parent / "ptxmm" / "models").glob("*.cat"))
PIECES = (
    *("x", "%r1", "$L", "12", "0x1f", "1.5", "0f3F800000", "1.", "07", ".u32", ".a::b", "+", "-", "@", "!", ",", ";"),
    *(":", "[", "]", "{", "}", "|", "&", " ", "\n", "// c\n", "/* c */", "/*", "*", "ld.u32 r, [x+4]", "{a, b}", "'"),
    "\t",
)
WORDS = (
    *("let", "let rec", "and", "flag", "as", "include", "if", "then", "else", "show", "unshow", "acyclic", "~empty"),
    *("irreflexive", " empty", "x", "po-loc", "a.b", '"k=v"', '"', "|", ";", "\\", "&", "*", "+", "?", "^-1", "^+"),
    *("^*", "~", "[", "]", "(", ")", "0", "=", ",", " ", "\n", "f(x, y)", "[R]", "(a | b)*", "a * b", "%", "-"),
    "let x = y\n",
)
THREAD_SAMPLES = {
    "IDENT": ("x", "%r1", "$L"),
    "QUALIFIER": (".u32", ".a::b"),
    "NUMBER": ("12", "0x1f", "07", "1.2x"),
    "FLOAT": ("1.5", "1.", "2e-3", "0f3F800000", "0d3FF0000000000000"),
    "SIGN": ("+", "-"),
}
MODEL_SAMPLES = {
    "LETREC": ("let rec", "let\n rec"),
    "CHECK": ("acyclic", "~ empty", "irreflexive"),
    "SHOW": ("show", "unshow"),
    "NAME": ("x", "po-loc", "a.b", "_"),
    "STRING": ('"a b"', '""'),
    "POSTFIX": ("+", "?", "^-1", "^+", "^*"),
}


def shape(node: Any) -> object:
    """A tree without its classes: types, texts and places."""
    if isinstance(node, str):
        token: Any = node
        kind = token.type if token.type in ("IDENT", "QUALIFIER", "NUMBER", "FLOAT", "SIGN") else None
        ends = token.end_line, token.end_column, token.end_pos
        return kind, str(node), token.line, token.column, token.start_pos, *ends
    return node.data, [shape(child) for child in node.children]


def same_thread(text: str) -> bool:
    """Whether ``text`` is PTX; both readers must agree on that, and on what it says."""
    found = ptx_reader.read(text)
    try:
        expected = parsed_thread(Origin(text, 1, 1), False)
    except PtxmmError:
        assert found is None, text
        return False
    assert found is not None, text
    assert [shape(n) for n in found] == [shape(n) for n in expected], text
    return True


def same_model(text: str, deep: bool = False) -> bool:
    """Whether ``text`` is a model. The reader by hand may leave a text that nests deeply to Lark."""
    found = cat_reader.read(text)
    try:
        expected = parsed_model(text)
    except PtxmmError:
        assert found is None, text
        return False
    assert found == expected or (deep and found is None), text
    return True


def mutant(text: str, pieces: tuple[str, ...], rng: random.Random) -> str:
    """``text`` with some places changed."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(text) + 1)
        end = at + rng.choice((0, 1, 1, 2, 5))
        text = text[:at] + rng.choice((*pieces, "")) + text[end:]
    return text


def bodies() -> list[str]:
    """The threads of random programs as text."""
    made = [seeded(n, "ptx-8.5") for n in range(40)]
    made += [family_program(name, n) for name in NAMES for n in range(12)]
    return ["\n".join(f"{line.text()};" if line.head else line.text() for line in t) for p in made for t in p.threads]


@pytest.mark.parametrize(
    ("sentences", "same"),
    [
        (Sentences(thread_grammar(), THREAD_SAMPLES, ("\n", "// c\n", "/* c */")), same_thread),
        (Sentences(model_grammar(), MODEL_SAMPLES, ("\n",)), same_model),
    ],
    ids=["threads", "models"],
)
def test_sentences_of_the_grammar(sentences: Sentences, same: Callable[[str], bool]) -> None:
    """Every rule of the grammar is in some of them, and most are still sentences once their tokens stand in a row."""
    rng = random.Random(5)
    right = wrong = 0
    for _ in range(1500):
        tokens = sentences.tokens(rng, size=rng.choice((4, 12, 30)))
        right += same(sentences.text(tokens, rng))
        wrong += not same(sentences.text(sentences.mutant(tokens, rng), rng))
    assert right > 1000 and wrong > 700
    assert not [rule for rules in sentences.rules.values() for rule in rules if rule not in sentences.used]


@pytest.mark.parametrize("module", [ptx_reader, cat_reader], ids=["threads", "models"])
def test_the_reader_names_every_rule_of_its_grammar(module: ModuleType) -> None:
    grammar = Path(module.__file__ or "").with_name("grammar.lark").read_text(encoding="utf-8")
    docs = [inspect.getdoc(item) or "" for item in vars(module._Reader).values() if inspect.isfunction(item)]
    named = [rule for doc in docs for rule in written_rules(doc)]
    assert sorted(named) == sorted(written_rules(grammar))


def written_rules(text: str) -> list[str]:
    """The rules in the text of a grammar, each on one line."""
    found = re.findall(r"^\??\w+:.*(?:\n *\|.*)*", re.sub(r"//.*", "", text), re.MULTILINE)
    return [" ".join(rule.split()) for rule in found if not rule.split(":")[0].isupper()]


def test_threads() -> None:
    rng = random.Random(1)
    texts = bodies()
    assert sum(map(same_thread, texts)) > 200
    assert 100 < sum(same_thread(mutant(rng.choice(texts), PIECES, rng)) for _ in range(1500)) < 1400


def test_pieces_of_threads() -> None:
    rng = random.Random(2)
    texts = ["".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 12))) for _ in range(6000)]
    assert sum(map(same_thread, texts)) > 50


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_shipped_models(path: Path) -> None:
    """All of them are read by hand."""
    text = cat_parser._take_title(cat_parser._blank_comments(path.read_text()))[1]
    assert same_model(text)


def test_models() -> None:
    rng = random.Random(3)
    texts = [cat_parser._take_title(cat_parser._blank_comments(path.read_text()))[1] for path in MODELS]
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("let", "empty", "flag"))]
    assert sum(same_model(line) for line in lines) > 50
    assert 100 < sum(same_model(mutant(rng.choice(lines), WORDS, rng)) for _ in range(3000)) < 2900


def test_pieces_of_models() -> None:
    rng = random.Random(4)
    texts = ["let x = " + "".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 9))) for _ in range(8000)]
    assert sum(map(same_model, texts)) > 50


@pytest.mark.parametrize("body", ["(" * 90 + "a" + ")" * 90, "~" * 150 + "a", "a" + "?" * 150])
def test_deep_models(body: str) -> None:
    """What is nested deeply is left to Lark, or read alike."""
    text = f"let x = {body}"
    assert same_model(text, deep=True)
    assert cat_parser.parse(text, "t.cat").statements


def test_too_deep() -> None:
    text = "let x = " + "~" * 250 + "a"
    assert cat_reader.read(text) is None
    with pytest.raises(PtxmmError, match="200 levels"):
        cat_parser.parse(text, "t.cat")
