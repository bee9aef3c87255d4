"""One pass over the tokens of a C++ source: its ``asm`` statements, the functions and the conditions around them.

Nothing is preprocessed: all branches of ``#if`` are looked at, macros are left alone, and an ``asm`` statement in the
body of a macro is found where it is complete.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from ptxmm.cuda.architectures import ANY, Range, both, condition, negation
from ptxmm.cuda.operands import KEYWORDS, Place, statements
from ptxmm.cuda.source import Source, Token, source, tokens
from ptxmm.cuda.statement import AsmStatement, Function, Unit
from ptxmm.ptx.tables.form import words

_LOOPS = frozenset({"for", "while", "do"})
_NO_FUNCTION = frozenset(
    words("""
    if for while switch catch return sizeof alignof alignas decltype noexcept requires static_assert typeof explicit
    __launch_bounds__ __attribute__ __declspec __cluster_dims__ __block_size__ __maxnreg__ __align__ asm __asm__
    __grid_constant__ throw constexpr template""")
)
_DEFINE = re.compile(r"#(?:\s|\\\r?\n)*define(?:\s|\\\r?\n)+[A-Za-z_$][A-Za-z0-9_$]*(?:\([^()]*\))?")
_DIRECTIVE = re.compile(r"#(?:[ \t]|\\\r?\n)*([a-z]+)")
_LONGEST_HEAD = 4000


class _Frame(Struct):
    """An open brace: the function that it opens or stands in, whether it stands in a loop, whether the statement goes
    on after it, and the parentheses and the start of the statement outside of it."""

    function: int | None
    opens: bool
    loop: bool
    inside: bool
    parens: int
    head: int


class _State(Struct):
    """Where the pass is."""

    frames: list[_Frame] = field(default_factory=list)
    parens: int = 0
    head: int = 0

    def copy(self) -> _State:
        return _State(list(self.frames), self.parens, self.head)


class _Branch(Struct):
    """An open ``#if``: the state at its start, the range of architectures of this branch, and of what the branches
    so far leave."""

    state: _State
    inside: Range
    left: Range


class _Pass(Struct):
    source: Source
    tokens: list[Token]
    state: _State = field(default_factory=_State)
    branches: list[_Branch] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    found: list[AsmStatement] = field(default_factory=list)

    def run(self) -> None:
        """Look at every token once."""
        state = self.state
        for index, token in enumerate(self.tokens):
            kind, text = token.kind, token.text
            if kind == "mark":
                state = self.state
                if text == "(":
                    state.parens += 1
                elif text == ")":
                    state.parens = max(0, state.parens - 1)
                elif text == "{":
                    self.open(index)
                elif text == "}":
                    self.close(index)
                elif text == ";" and state.parens == 0:
                    state.head = index + 1
            elif kind == "directive":
                self.directive(token)
            elif kind == "name" and text in KEYWORDS:
                self.assembly(index)

    def assembly(self, index: int) -> None:
        state = self.state
        frame = state.frames[-1] if state.frames else None
        before = self.tokens[state.head : index]
        loop = any(token.text in _LOOPS for token in before) if frame is not None and index - state.head < 64 else False
        place = Place(
            frame.function if frame else None,
            loop or (frame is not None and frame.loop),
            self.inside,
        )
        self.found += statements(self.tokens, index, place)

    def open(self, index: int) -> None:
        state = self.state
        frame = state.frames[-1] if state.frames else None
        function, opens = (frame.function if frame else None), False
        head = self.tokens[state.head : index]
        loop = frame.loop if frame else False
        initializer = False
        if function is None:
            name = _function_name(head)
            initializer = name is not None and _initializes(head)
            if name is not None and not initializer:
                function, opens = len(self.functions), True
                self.functions.append(Function(name, (state.head, index), index + 1, len(self.tokens)))
        elif not loop:
            loop = any(token.text in _LOOPS for token in head[:64])
        inside = initializer or state.parens > 0  # a lambda among arguments, or `: member{...}`
        state.frames.append(_Frame(function, opens, loop, inside, state.parens, state.head))
        state.parens, state.head = 0, index + 1

    def close(self, index: int) -> None:
        state = self.state
        if state.frames:
            frame = state.frames.pop()
            state.parens = frame.parens
            if frame.opens and frame.function is not None:
                known = self.functions[frame.function]
                self.functions[frame.function] = Function(known.name, known.head, known.first, index)
            if frame.inside:
                state.head = frame.head
                return
        state.head = index + 1

    def directive(self, token: Token) -> None:
        """Follow conditions; of the branches of one ``#if`` each starts from the same state."""
        hit = _DIRECTIVE.match(token.text)
        word, rest = (hit[1], token.text[hit.end() :]) if hit else ("", "")
        given, left = (condition(rest), negation(rest)) if word in ("if", "elif") else (ANY, ANY)
        if word in ("if", "ifdef", "ifndef"):
            outside = self.inside
            self.branches.append(_Branch(self.state.copy(), both(outside, given), both(outside, left)))
        elif word in ("elif", "else") and self.branches:
            branch = self.branches[-1]
            self.state = branch.state.copy()
            branch.inside, branch.left = both(branch.left, given), both(branch.left, left)
        elif word == "endif" and self.branches:
            self.branches.pop()
        elif word == "define":
            self.macro(token)

    @property
    def inside(self) -> Range:
        """The architectures of the branch that is open."""
        return self.branches[-1].inside if self.branches else ANY

    def macro(self, token: Token) -> None:
        if "asm" not in token.text:
            return
        hit = _DEFINE.match(token.text)
        if hit is None:
            return
        body = tokens(self.source.text, token.start + hit.end(), token.end, directives=False)
        for index, part in enumerate(body):
            if part.kind == "name" and part.text in KEYWORDS:
                self.found += statements(body, index, Place(None, True, self.inside, macro=True))


def _function_name(head: list[Token]) -> str | None:
    """The name of the function whose body comes after ``head``; None if this is no function."""
    if len(head) > _LONGEST_HEAD or (head and head[-1].text == "="):
        return None
    depth = 0
    name: str | None = None
    before, named = "", False  # the token before, and whether it is a name
    generic: str | None = None  # the name before the last `<`
    for token in head:
        text = token.text
        if token.kind == "directive":
            continue
        if text == "(":
            candidate = before if named else generic if before == ">" else None
            if depth == 0 and candidate is not None and candidate not in _NO_FUNCTION:
                name = candidate
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and text == "<" and named:
            generic = before
        elif depth == 0 and text == ":" and name is not None:
            break
        before, named = text, token.kind == "name"
    return name


def _initializes(head: list[Token]) -> bool:
    """Whether the brace after ``head`` is that of a member in ``S(int a) : a_{a} {``."""
    last = head[-1]
    if last.kind != "name" or last.text in ("const", "noexcept", "override", "final", "mutable", "try"):
        return False
    return len(head) > 1 and head[-2].text in (":", ",") and any(token.text == ")" for token in head)


def scan(name: str, text: str) -> Unit:
    """Find the ``asm`` statements and functions of the C++ source ``text`` called ``name``. Never fails: what is no
    C++ has none."""
    file = source(name, text)
    if not any(word in text for word in ("asm", "__device__", "__global__")):
        return Unit(file, [], (), ())
    work = _Pass(file, tokens(text))
    work.run()
    return Unit(file, work.tokens, tuple(work.functions), tuple(work.found))
