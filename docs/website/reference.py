"""Pages to look things up in, made of what the program is made of: grammars, the JSON schema, the errors."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import ptxmm
from ptxmm.render import schema

PACKAGE = Path(ptxmm.__file__).parent
_CASES = Path(__file__).resolve().parents[2] / "tests" / "bad_input" / "cases.txt"

GRAMMARS = {
    "ptx/grammar.lark": "Instructions",
    "formats/litmus.lark": "Litmus tests",
    "formats/nvlitmus.lark": "`.test` files of nvlitmus",
    "ptx/module.lark": "PTX modules",
    "cat/grammar.lark": "The model language",
}
_LARK = re.compile(
    r'(?P<string>"(?:\\.|[^"\\])*")|(?P<regex>/(?:\\.|[^/\\\n])+/)|(?P<comment>//[^\n]*)|(?P<alias>[ \t]*->[ \t]*\w+)'
    r"|(?P<name>^[?!]?\w+(?:\.\d+)?:)|(?P<ignore>^%ignore\b)",
    re.MULTILINE,
)


def ebnf(text: str) -> str:
    """A Lark grammar in the EBNF of the W3C; regular expressions stand between slashes, and comments stay.

    Names of the parse tree, priorities of terminals, and the marks of inlined rules are not about what is accepted.
    """

    def written(part: re.Match[str]) -> str:
        match part.lastgroup:
            case "comment":
                return f"/* {part[0].removeprefix('//').strip()} */"
            case "alias":
                return ""
            case "name":
                return re.sub(r"^[?!]|\.\d+(?=:)", "", part[0])[:-1] + " ::="
            case "ignore":
                return "/* between two words: */ IGNORED ::="
            case _:
                return part[0]

    return re.sub(r"[ \t]+$", "", _LARK.sub(written, text), flags=re.MULTILINE).strip("\n") + "\n"


def grammar() -> str:
    """The page of grammars."""
    page = """# Grammars

The grammars that ptxmm reads by, or that its readers are held to by random sentences with and without mistakes
([formats](formats.md)), in the EBNF of the W3C: `A ::= B C` is B and then C, `|` an alternative, `?` what may be left
out, `*` any number of times, `+` at least once; a string is written as it stands, and a regular expression (of Python)
stands between slashes.
"""
    for file, title in GRAMMARS.items():
        text = ebnf((PACKAGE / file).read_text(encoding="utf-8"))
        page += f"\n## {title}\n\n`ptxmm/{file}`\n\n```ebnf\n{text}```\n"
    return page


def json_schema() -> str:
    """The page of what JSON documents hold: a table for each kind of object."""
    page = """# JSON, key by key

[schema.json](schema.json) as tables: what `--json` prints is a `Document`, and of `sweep` a `Swept` on each line; what
the words mean is on [Results and JSON](results.md). A key that has a default is there all the same, but in a `Swept`.
"""
    for name, item in json.loads(schema.text())["$defs"].items():
        text = " ".join(item.get("description", "").split())
        page += f"\n## {name}\n\n" + (_prose(text) + "\n\n" if text else "")
        if "enum" in item:
            page += "One of " + ", ".join(f"`{value}`" for value in item["enum"]) + ".\n"
        elif "properties" in item:
            page += "| key | type | default |\n|---|---|---|\n"
            for key, kind in item["properties"].items():
                default = f"`{json.dumps(kind['default'])}`" if "default" in kind else ""
                page += f"| `{key}` | {_type(kind)} | {default} |\n"
        else:
            page += _type(item) + "\n"
    return page


def _prose(text: str) -> str:
    """A docstring in Markdown."""
    return text.replace("``", "`").replace("|", "\\|")


def _type(kind: dict[str, Any]) -> str:
    """A type of the schema in words."""
    match kind:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": kinds}:
            return " or ".join(_type(item) for item in kinds)
        case {"enum": values}:
            return " or ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "array", "prefixItems": kinds}:
            return "list of " + ", ".join(_type(item) for item in kinds)
        case {"type": "array", "items": dict(item)}:
            return f"list of {_type(item)}"
        case {"type": "object", "additionalProperties": dict(item)}:
            return f"object, each value {_type(item)}"
        case {"type": name}:
            return str(name)
        case _:
            return "anything"


PARTS = {
    "formats": "Litmus tests, `.test` files and kernels",
    "ptx": "Instructions and modules",
    "program": "Names, types and conditions",
    "events": "What a program does",
    "cat": "Models",
    "engines": "The search",
    "generate": "Generated tests",
    "analysis": "Questions and their limits",
    "cuda": "CUDA sources",
    "cli": "The command line",
    "api": "Python",
    "render": "Forms of output",
    "web": "The playground",
    "": "Files and texts",
}


def errors() -> str:
    """The page of errors: every message that the source text has, and those that wrong tests get besides."""
    page = """# Errors

Every message, with … for what it names. An error has the place, the line with a caret under what is wrong, and,
where there is one, the mend as a `hint`; what kinds there are and how JSON has them is on
[Results and JSON](results.md#errors). What a *program* does wrong while it runs makes it
[undefined](results.md#undefined-programs), which is a result and no error; what `ptxmm lint` finds has
[its own pages](lint/index.md).
"""
    told = messages()
    for part, found in told.items():
        if found:
            page += f"\n## {PARTS[part]}\n\n| message | hint |\n|---|---|\n"
            page += "".join(f"| {_cell(message)} | {_cell(hint)} |\n" for message, hint in sorted(found))
    known = [text for found in told.values() for text, _ in found]
    patterns = [
        re.compile(re.escape(text).replace("…", ".+?"), re.DOTALL) for text in known if re.search(r"\w{4}", text)
    ]
    page += "\n## Put together of parts\n\nAs wrong litmus tests get them:\n\n| message | hint |\n|---|---|\n"
    for message, hint in wrong_tests():
        if not any(pattern.fullmatch(message) for pattern in patterns):
            page += f"| {_cell(message)} | {_cell(hint)} |\n"
    return page


def wrong_tests() -> list[tuple[str, str]]:
    """What is said of the wrong litmus tests of ``tests/bad_input``: the message and its hint."""
    text = _CASES.read_text(encoding="utf-8")
    found = re.findall(r"^\S+: error: (.*)\n(?:(?!=== )(?!  hint: ).*\n)*(?:  hint: (.*)\n)?", text, re.MULTILINE)
    return sorted(set(found))


def messages() -> dict[str, set[tuple[str, str]]]:
    """For each part of the package the messages of its errors with their hints, … for what they name."""
    makers: dict[str, set[int]] = {}
    for name, at in _makers():
        makers.setdefault(name, set()).add(at)
    found: dict[str, set[tuple[str, str]]] = {part: set() for part in PARTS}
    for path, tree in _sources(rf"\b(?:{'|'.join(makers)})\s*\("):
        part = path.relative_to(PACKAGE).parts[0]
        found[part if part in PARTS else ""] |= set(_messages(tree, makers))
    return found


def _sources(pattern: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules in whose text something has ``pattern``: reading them all takes seconds."""
    return ((path, _tree(path)) for path in sorted(PACKAGE.rglob("*.py")) if re.search(pattern, _text(path)))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_text(path))


def _makers() -> Iterator[tuple[str, int]]:
    """The functions that make an error of a message, and where among their arguments it stands."""
    yield "PtxmmError", 0
    for _, tree in _sources(r"\bmessage: "):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
                if "message" in names and "PtxmmError" in ast.unparse(node):
                    yield node.name, names.index("message")


def _messages(tree: ast.Module, makers: dict[str, set[int]]) -> Iterator[tuple[str, str]]:
    for function in ast.walk(tree):
        for call in _calls(function, makers) if isinstance(function, ast.FunctionDef) else ():
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            given = [call.args[at] for at in makers[_called(call)] if at < len(call.args)]
            for message in (*given, *([named["message"]] if "message" in named else ())):
                values = [message]
                if isinstance(message, ast.Name):
                    assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
                    values = [node.value for node in assigned if ast.unparse(node.targets[0]) == message.id]
                for text in (text for value in values for text in _texts(value)):
                    if re.search(r"\w{2}.* ", text):
                        yield text, " or ".join(_texts(named.get("hint")))


def _calls(function: ast.FunctionDef, makers: Collection[str]) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call) and _called(node) in makers)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _texts(node: ast.expr | None) -> list[str]:
    """What an expression can be, if its text stands there."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            texts = (part.value if isinstance(part, ast.Constant) else "…" for part in parts)
            return ["".join(map(str, texts)).replace("……", "…")]
        case ast.IfExp(body=first, orelse=second):
            return _texts(first) + _texts(second)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a in _texts(left) or ["…"] for b in _texts(right) or ["…"]]
        case _:
            return []


def _cell(text: str) -> str:
    """A text in a table, as it stands."""
    text = text.replace("\n", " ").replace("|", "\\|")
    return text if "`" in text else re.sub(r"([*_<])", r"\\\1", text)


PAGES = {"grammar.md": grammar, "json.md": json_schema, "errors.md": errors}
"""The pages of ``docs`` that are made here."""
