"""The pages to look things up in have all that the program has: grammar rules, keys of JSON, errors, commands."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from lark import Lark

from docs.website.reference import GRAMMARS, PACKAGE, ebnf, errors, grammar, json_schema, wrong_tests
from ptxmm.cat import index
from ptxmm.cli.app import COMMANDS
from ptxmm.render import schema
from tests.support import ROOT
from tests.test_bad_input import cases

_RULE = re.compile(r"^(?:/\* between two words: \*/ )?(\w+) ::=", re.MULTILINE)


@pytest.mark.parametrize("file", GRAMMARS)
def test_a_grammar_in_ebnf_is_the_grammar(file: str) -> None:
    """Written back in Lark's way, it accepts the same: the same rules, expanded, and the same terminals."""
    text = (PACKAGE / file).read_text(encoding="utf-8")
    written = ebnf(text)
    assert written in grammar() and "->" not in re.sub(r'"[^"]*"|/\*.*?\*/', "", written)
    back = written.replace("/* between two words: */ IGNORED ::=", "%ignore").replace(" ::=", ":")
    back = re.sub(r"^/\*.*?\*/$", "", back, flags=re.MULTILINE)
    starts = [name.lower() for name in _RULE.findall(written) if name.islower() and not name.startswith("_")][:1]
    first, second = (Lark(source, start=starts, parser="earley", maybe_placeholders=False) for source in (text, back))
    assert {str(rule.pattern) for rule in first.terminals} == {str(rule.pattern) for rule in second.terminals}
    assert len(first.rules) == len(second.rules)
    names = re.findall(r"^[?!]?(\w+)(?:\.\d+)?:", text, re.MULTILINE)
    assert [name for name in _RULE.findall(written) if name != "IGNORED"] == names and len(names) > 8


def test_every_key_of_json_is_on_its_page() -> None:
    page = json_schema()
    for name, item in json.loads(schema.text())["$defs"].items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for key in item.get("properties", ()):
            assert f"\n| `{key}` | " in section, (name, key)
    assert not re.search(r"\| anything \|", page)


def test_every_error_of_a_wrong_litmus_test_is_on_the_page() -> None:
    page = errors()
    rows = [row.replace("\\", "") for row in re.findall(r"^\| (.*) \| .*\|$", page, re.MULTILINE)]
    patterns = [re.compile(re.escape(row).replace("…", ".+?"), re.DOTALL) for row in rows if re.search(r"\w{4}", row)]
    said = {message.partition("error: ")[2].partition("\n")[0] for _, _, message in cases()}
    assert said == {message for message, _ in wrong_tests()} and len(said) > 100
    for text in said:
        assert text in rows or any(pattern.fullmatch(text.replace("\\", "")) for pattern in patterns), text
    assert "| this is not a PTX litmus test | the first line is `PTX NAME` |" in page
    assert len(rows) > 400


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_on_the_page_of_commands(command: str) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert f"\n## {command}\n" in page and f"\n$ ptxmm {command} --help\n" in page


def test_every_model_and_reading_is_named() -> None:
    shipped = tomllib.loads((PACKAGE / "models" / "index.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "readings.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in index().readings)
    guide = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("guide.md", "cat.md", "model.md"))
    assert all(name in guide for name in index().models) and shipped
