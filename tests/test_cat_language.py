"""The model language: what is accepted, what it means, and the message for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm import cat
from ptxmm.cat import syntax
from ptxmm.cat.parser import parse
from ptxmm.errors import PtxmmError


def shape(node: syntax.Expression) -> str:
    """An expression with every operator in brackets."""
    if isinstance(node, syntax.Name):
        return node.name
    if isinstance(node, syntax.Call):
        return f"{node.name}({', '.join(map(shape, node.arguments))})"
    if isinstance(node, syntax.Conditional):
        return f"<{node.condition}: {shape(node.yes)} else {shape(node.no)}>"
    if len(node.operands) > 1:
        return "(" + f" {node.operator} ".join(map(shape, node.operands)) + ")"
    if node.operator == "[]":
        return f"[{shape(node.operands[0])}]"
    return f"({node.operator} {shape(node.operands[0])})"


def body(text: str) -> str:
    statement = parse(f"let x = {text}", "m.cat").statements[0]
    assert isinstance(statement, syntax.Let)
    return shape(statement.definitions[0].body)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a | b ; c", "(a | (b ; c))"),
        ("a ; b | c ; d", "((a ; b) | (c ; d))"),
        ("a ; b \\ c", "(a ; (b \\ c))"),
        ("a \\ b & c", "(a \\ (b & c))"),
        ("a & b * c", "(a & (b * c))"),
        ("a \\ b \\ c", "((a \\ b) \\ c)"),
        ("a | b | c", "(a | b | c)"),
        ("a;b;c", "(a ; b ; c)"),
        ("GEN * GEN | SUR * SUR", "((GEN * GEN) | (SUR * SUR))"),
        ("a*", "(star a)"),
        ("a* * b*", "((star a) * (star b))"),
        ("a**b", "((star a) * b)"),
        ("a* | b", "((star a) | b)"),
        ("(a*)", "(star a)"),
        ("a*;b", "((star a) ; b)"),
        ("a*+?", "(? (+ (star a)))"),
        ("a^* | a^+", "((star a) | (+ a))"),
        ("rf^-1; co", "((^-1 rf) ; co)"),
        ("co^-1^-1", "(^-1 (^-1 co))"),
        ("~a+", "(+ (~ a))"),
        ("~a * ~b", "((~ a) * (~ b))"),
        ("[M & GEN]; (bc & vovl); [M \\ GEN]", "([(M & GEN)] ; (bc & vovl) ; [(M \\ GEN)])"),
        ("c; c & p", "(c ; (c & p))"),
        ("po?; ((s | t); po?)+", "((? po) ; (+ ((s | t) ; (? po))))"),
        ("domain(a;b) * range(c)", "(domain((a ; b)) * range(c))"),
        ("f(a | b, c)?", "(? f((a | b), c))"),
        ("po-loc | axiom-a.b_c", "(po-loc | axiom-a.b_c)"),
        ('if "k=v" then a | b else c | d', "<k=v: (a | b) else (c | d)>"),
        ('if "k=v" then a else if "l=w" then b else c', "<k=v: a else <l=w: b else c>>"),
        ('a | (if "k=v" then b else 0)', "(a | <k=v: b else 0>)"),
        ("letter | rectangle | emptyset | as-is | android", "(letter | rectangle | emptyset | as-is | android)"),
        ("a (* b (* c *) | *) | d // e", "(a | d)"),
        ("a // (* not opened\n | b", "(a | b)"),
        ("a (* // *) | b", "(a | b)"),
        ('a (* " *) | b', "(a | b)"),
        ("(r*) | (**) b", "((star r) | b)"),
    ],
)
def test_precedence(text: str, wanted: str) -> None:
    assert body(text) == wanted


def test_statements() -> None:
    file = parse(
        "PTX v6.0\nlet rec a = b and c = d\nlet f(x, y) = x;y\n~empty r as not-empty\nflag ~ acyclic r as loop\n"
        'include "x.cat"\nshow a as b, c unshow a\nirreflexive r',
        "m.cat",
    )
    assert file.title == "PTX v6.0"
    kinds = [type(statement).__name__ for statement in file.statements]
    assert kinds == ["Let", "Let", "Check", "Check", "Include", "Show", "Show", "Check"]
    checks = [statement for statement in file.statements if isinstance(statement, syntax.Check)]
    assert [(c.kind, c.negated, c.flag, c.name) for c in checks] == [
        ("empty", True, False, "not-empty"),
        ("acyclic", True, True, "loop"),
        ("irreflexive", False, False, None),
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"A title; with (anything)"\nempty 0', "A title; with (anything)"),
        ("PTX\nempty 0", "PTX"),
        ("(* c *)\n\n  PTX v7.5  // d\r\nempty 0", "PTX v7.5"),
        ("SC", "SC"),
        ("empty 0", None),
        ("", None),
        ("show po", None),
        ("let-free relations", "let-free relations"),
    ],
)
def test_titles(text: str, title: str | None) -> None:
    assert parse(text, "m.cat").title == title


ERRORS = [
    ("let x = po |", "1:13: error: the model ends in the middle of a statement", "a set or relation is expected here"),
    ("empty", "1:6: error: the model ends in the middle of a statement", "a set or relation is expected here"),
    ("let x = (po", "1:12: error: the model ends in the middle of a statement", "`)` is expected here"),
    ("let x = [R", "1:11: error: the model ends in the middle of a statement", "`]` is expected here"),
    ("let = po", "1:5: error: unexpected `=`", "a name is expected here"),
    ("let let = po", "1:5: error: unexpected `let`", "a name is expected here"),
    ("let x po", "1:7: error: unexpected `po`", "`=` or `(` is expected here"),
    ("let x = po)", "1:11: error: unexpected `)`", "there is no `(` for it"),
    ("let x = po;;rf", "1:12: error: unexpected `;`", "a set or relation is expected here"),
    ("let x = po $ rf", "1:12: error: unexpected character `$`", None),
    ("let x = po\0", "1:11: error: unexpected character `U+0000`", None),
    ("let x = po^-2", "1:11: error: unexpected character `^`", None),
    ('let x = "a', "1:9: error: this string has no end on its line", 'close it with `"`'),
    ("(* (* *)\nlet x = po", "1:1: error: this comment has no end", "close it with `*)`"),
    ("acyclic po rf", "1:12: error: unexpected `rf`", "an operator or a new statement is expected here"),
    ("let a = po\nacylic a as b", "2:1: error: unexpected `acylic`", "did you mean `acyclic`?"),
    ("acylic po", "1:1: error: unknown statement `acylic`", "did you mean `acyclic`?"),
    ("PTX (6.0)", "1:1: error: unexpected `PTX`", "a title that is more than plain words goes in quotes"),
    ("let x = po in x", "1:12: error: unexpected `in`", "`in` is not part of the supported subset of cat"),
    (
        "procedure p() = po",
        "1:1: error: unexpected `procedure`",
        "`procedure` is not part of the supported subset of cat",
    ),
    ("include po", "1:9: error: unexpected `po`", "a string is expected here"),
    ('let x = if "a=b" po else R', "1:18: error: unexpected `po`", "`then` is expected here"),
    ("let x = pp", "1:9: error: unknown name `pp`", None),
    ("let x = poloc", "1:9: error: unknown name `poloc`", "did you mean `po-loc` or `loc` or `vloc`?"),
    ("let x = rel", "1:9: error: unknown name `rel`", "did you mean `REL`?"),
    ("let causal = po\nempty cause", "2:7: error: unknown name `cause`", "did you mean `causal` or `cluphase`?"),
    ("show po, q", "1:10: error: unknown name `q`", None),
    ("let x = R; po", "1:9: error: `;` needs a relation, `R` is a set", "`[S]` makes a relation of a set"),
    ("let x = R+", "1:9: error: `+` needs a relation, `R` is a set", "`[S]` makes a relation of a set"),
    ("let x = (R & W)*", "1:10: error: `*` needs a relation, this is a set", "`[S]` makes a relation of a set"),
    (
        "let x = po | R",
        "1:14: error: `|` needs two sets or two relations, here a relation and a set",
        "`[S]` makes a relation of a set",
    ),
    ("let x = [po]", "1:10: error: `[ ]` needs a set, `po` is a relation", None),
    ("let x = R * po", "1:13: error: the product `*` needs a set, `po` is a relation", None),
    (
        "acyclic R",
        "1:1: error: `acyclic` needs a relation, this is a set",
        "only `empty` applies to sets; `[S]` makes a relation of a set",
    ),
    ("empty po as a\nempty rf as a", "2:13: error: two checks are named `a`", None),
    ("flag ~empty po", "1:6: error: a flag needs a name", "add `as NAME`"),
    ("let rec x = po \\ x", "1:16: error: a recursive definition is used under `\\`: it may have no solution", None),
    ("let rec x = ~x", "1:13: error: a recursive definition is used under `~`: it may have no solution", None),
    ("let rec x = R", "1:9: error: `x` is a set", "`let rec` defines relations"),
    ("let rec f(a) = a", "1:9: error: the function `f` is recursive", "functions can't be"),
    ("let f(a, a) = a", "1:10: error: two parameters are named `a`", None),
    ("let x = po and x = rf", "1:16: error: `x` is defined twice in one `let`", None),
    ("let id = po", "1:5: error: `id` is built in", "choose another name"),
    ("let f(a) = a\nlet y = f", "2:9: error: `f` is a function", "apply it: `f(...)`"),
    ("let f(a) = a\nlet y = f(po, rf)", "2:9: error: `f` takes 1 argument, not 2", None),
    (
        "let f(a) = a;a\nlet y = f(R)",
        "1:12: error: `;` needs a relation, `a` is a set",
        "`[S]` makes a relation of a set",
    ),
    ("let y = po(rf)", "1:9: error: `po` is not a function", None),
    ("let y = domian(po)", "1:9: error: unknown function `domian`", "did you mean `domain`?"),
    ("let y = domain(R)", "1:16: error: `domain` needs a relation, this is a set", None),
    ('let x = if "a" then po else rf', '1:12: error: `"a"` is not a condition', 'write `if "key=value"`'),
    ('let x = if "red=x" then po else rf', "1:12: error: reading `red` has no value `x`", "values: link, read"),
    (
        'let x = if "a=b" then po else R',
        "1:12: error: one branch of this `if` is a set, the other a relation",
        None,
    ),
    ('let x = if "a=b" then po else pp', "1:31: error: unknown name `pp`", None),
    (
        'include "no.cat"',
        "1:9: error: there is no model file `no.cat`",
        "includes are looked up beside the file, then in ptxmm",
    ),
    ('include "/etc/passwd"', "1:9: error: `/etc/passwd` is not a .cat file", None),
    (
        "let x = " + "~" * 250 + "po",
        "1:59: error: expressions nest at most 200 levels deep",
        "name a part of it with `let`",
    ),
    (
        "let x = po" + " \\ rf" * 250,
        "1:1007: error: expressions nest at most 200 levels deep",
        "name a part of it with `let`",
    ),
    (
        "let f0(a) = a;a " + " ".join(f"let f{i}(a) = f{i - 1}(f{i - 1}(a))" for i in range(1, 60)) + " empty f59(po)",
        "1:51: error: a model has at most 20000 operations, calls expanded",
        None,
    ),
]


@pytest.mark.parametrize(("text", "message", "hint"), ERRORS, ids=[case[1][:60] for case in ERRORS])
def test_errors(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        cat.parse_model(text, "m.cat")
    error = caught.value
    assert str(error).split("\n")[0] == f"m.cat:{message}"
    assert error.hint == hint
    assert error.kind == "model"
    assert error.source is not None


def test_the_caret() -> None:
    with pytest.raises(PtxmmError) as caught:
        cat.parse_model("let a = po\nlet b = a | rel\n", "m.cat")
    assert str(caught.value) == (
        "m.cat:2:13: error: unknown name `rel`\n  let b = a | rel\n              ^^^\n  hint: did you mean `REL`?"
    )


def test_shadowing_refers_to_the_old_name() -> None:
    model = cat.parse_model("let co = co+\nlet fr = rf^-1; co\nempty fr as a\nempty co as b")
    a, b = model.axioms
    assert a.body.depends == {"rf", "co"}
    assert b.body.operator == "plus"
    assert model.definitions["co"] is b.body


def test_functions_see_the_names_of_their_definition() -> None:
    model = cat.parse_model("let r = po\nlet f(x) = x; r\nlet r = rf\nempty f(co) as a")
    assert model.axioms[0].body.depends == {"co", "po"}


def test_both_branches_are_checked_and_one_is_taken() -> None:
    text = 'let x = if "my-key=on" then po else rf\nempty x as a'
    assert cat.parse_model(text).axioms[0].body.name == "rf"
    assert cat.parse_model(text, readings={"my-key": "on"}).axioms[0].body.name == "po"
    with pytest.raises(PtxmmError) as caught:
        cat.parse_model(text, readings={"my-kee": "on"})
    assert caught.value.message == "unknown reading `my-kee`"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean `my-key`?")


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "m.cat").write_text('"M"\ninclude "sub/a.cat"\nempty a as x')
    (tmp_path / "sub" / "a.cat").write_text('include "b.cat"\nlet a = b;b')
    (tmp_path / "sub" / "b.cat").write_text("\ufeffTitle\r\nlet b = po\r\n", newline="")
    model = cat.load(tmp_path / "m.cat")
    assert (model.name, model.title) == ("m", "M")
    assert model.axioms[0].body.depends == {"po"}
    (tmp_path / "sub" / "b.cat").write_text("let b = pq")
    with pytest.raises(PtxmmError) as caught:
        cat.load(tmp_path / "m.cat")
    assert str(caught.value).split("\n")[0] == f"{tmp_path / 'sub' / 'b.cat'}:1:9: error: unknown name `pq`"
    (tmp_path / "sub" / "b.cat").write_text('include "a.cat"')
    with pytest.raises(PtxmmError) as caught:
        cat.load(tmp_path / "m.cat")
    a, b = tmp_path / "sub" / "a.cat", tmp_path / "sub" / "b.cat"
    assert caught.value.message == f"`a.cat` includes itself ({a} -> {b} -> {a})"
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(b), 1, 9)


def test_a_shipped_file_can_be_included(tmp_path: Path) -> None:
    (tmp_path / "mine.cat").write_text('include "ptx-8.5.cat"\nacyclic po | rf as Extra')
    model = cat.load(tmp_path / "mine.cat")
    assert [axiom.name for axiom in model.axioms] == [*(a.name for a in cat.load("ptx-8.5").axioms), "Extra"]
    assert model.coverage.isa is None
    assert model.readings == cat.load("ptx-8.5").readings
    (tmp_path / "more.cat").write_text('include "mine.cat"')
    assert cat.load(tmp_path / "more.cat").readings["tear"] == "on"
    (tmp_path / "old.cat").write_text('include "ptx-6.0.cat"')
    assert cat.load(tmp_path / "old.cat").readings == cat.load("ptx-6.0").readings
    assert cat.load(tmp_path / "old.cat", {"atomic": "operation"}).readings["atomic"] == "operation"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PtxmmError) as caught:
        cat.load(tmp_path / "none.cat")
    assert str(caught.value) == f"{tmp_path / 'none.cat'}: error: the file can't be read: No such file or directory"
    assert caught.value.kind == "io"
    (tmp_path / "binary.cat").write_bytes(b"let x = \xff\xfe")
    with pytest.raises(PtxmmError) as caught:
        cat.load(tmp_path / "binary.cat")
    assert str(caught.value) == f"{tmp_path / 'binary.cat'}: error: not UTF-8 text (byte 8)"
    (tmp_path / "large.cat").write_text("let x = po | rf\n" * 20_000)
    with pytest.raises(PtxmmError) as caught:
        cat.load(tmp_path / "large.cat")
    assert str(caught.value) == f"{tmp_path / 'large.cat'}: error: a model has at most 256 KiB of text"


pieces = st.sampled_from(
    (
        *'()[]|&;\\*+?~=,"\n0é\0',
        *("^-1", "let", "rec", "and", "x", "po", "R", "acyclic", "empty", "as", "flag", "(*", "*)", "//"),
        *("if", "then", "else", "include", "show", "domain", '"a=b"'),
    )
)


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(pieces, max_size=25).map(" ".join), st.lists(pieces).map("".join)))
def test_any_text_is_a_model_or_an_error(text: str) -> None:
    try:
        cat.parse_model(text)
    except PtxmmError as error:
        assert str(error)
