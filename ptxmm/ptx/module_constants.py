"""Constant expressions (PTX ISA 4.5.4 to 4.5.6): their values, and statements with the values in their place."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.ptx.module_tokens import END, Cursor, made
from ptxmm.ptx.origin import clip
from ptxmm.ptx.parser import parse_float, parse_integer
from ptxmm.tokens import Token

WARP_SIZE = 32
MAX_DEPTH = 100
_BITS = 1 << 64

# Binary operators by precedence (Table 5), and what they are on values of one type.
_LEVELS: Mapping[str, int] = {
    sign: level
    for level, signs in enumerate(("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), 1)
    for sign in signs.split()
}
_COMPARISONS: Mapping[str, Callable[..., bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_REAL: Mapping[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_ARITHMETIC: Mapping[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


class Integer(Struct, frozen=True):
    """A value of type ``.s64`` or, if ``unsigned``, ``.u64``."""

    value: int
    unsigned: bool = False


class Real(Struct, frozen=True):
    """A value of type ``.f64``; with ``single`` the bits of an exact single-precision constant (4.5.2)."""

    value: float
    single: int | None = None


Constant = Integer | Real


def integer(value: int, unsigned: bool) -> Integer:
    """``value`` modulo 2**64 in that type."""
    value %= _BITS
    return Integer(value if unsigned or value < _BITS >> 1 else value - _BITS, unsigned)


def constant(cursor: Cursor, level: int = 0, depth: int = 0) -> Constant:
    """The value of the constant expression that begins at ``cursor``, which is moved behind it; ``level`` is the
    precedence that its operators have at least. Raises ``PtxmmError``: there is none, or its value is not defined.

    ?expression: disjunction | disjunction "?" expression ":" expression -> conditional
    ?disjunction: conjunction | disjunction OR conjunction -> binary
    ?conjunction: bit_or | conjunction AND bit_or -> binary
    ?bit_or: bit_xor | bit_or BIT_OR bit_xor -> binary
    ?bit_xor: bit_and | bit_xor BIT_XOR bit_and -> binary
    ?bit_and: equality | bit_and BIT_AND equality -> binary
    ?equality: relation | equality EQUALITY relation -> binary
    ?relation: shift | relation (LESS | GREATER | RELATION) shift -> binary
    ?shift: sum | shift SHIFT sum -> binary
    ?sum: product | sum SIGN product -> binary
    ?product: unary | product (TIMES | DIVIDED | MODULO) unary -> binary
    """
    _check_depth(cursor, depth, cursor.here)
    left = _unary(cursor, depth)
    while cursor.type != END:
        if cursor.type == "?" and level == 0:
            left = _conditional(cursor, left, depth)
            continue
        precedence = _LEVELS.get(cursor.text(), 0) if cursor.type not in ("STRING", "IDENT") else 0
        if precedence == 0 or precedence < level:
            break
        token = cursor.next()
        left = _binary(cursor, token, left, constant(cursor, precedence + 1, depth + 1))
    return left


def _check_depth(cursor: Cursor, depth: int, token: Token) -> None:
    if depth > MAX_DEPTH:
        raise cursor.error("the constant expression is nested too deeply", token, kind="unsupported")


def integer_constant(cursor: Cursor, level: int = 0) -> int:
    """As ``constant``, for an integer. Raises ``PtxmmError`` for a floating-point value too."""
    first = cursor.index
    value = constant(cursor, level)
    if isinstance(value, Real):
        raise cursor.error("expected an integer constant, found a floating-point constant", cursor.tokens[first])
    return value.value


def starts_constant(cursor: Cursor, index: int) -> bool:
    """Whether the token with that index can begin a constant expression."""
    kind = cursor.types[index]
    return kind in ("NUMBER", "FLOAT", "SIGN", "(", "~", "!") or (kind == "IDENT" and cursor.tokens[index] == "WARP_SZ")


def folded(cursor: Cursor) -> list[Token]:
    """The constant expression at ``cursor``, which is moved behind it, as the tokens of one constant. A constant that
    is no expression keeps its tokens."""
    first = cursor.index
    value = constant(cursor)
    taken = cursor.tokens[first : cursor.index]
    if len(taken) == 1 or (len(taken) == 2 and taken[0].type == "SIGN" and taken[1].type in ("NUMBER", "FLOAT")):
        return [made(f"0{t}", "FLOAT", t, t) if t.startswith(".") else t for t in taken]
    if isinstance(value, Real):
        bits = struct.unpack("<Q", struct.pack("<d", value.value))[0]
        return [made(f"0d{bits:016X}", "FLOAT", taken[0], taken[-1])]
    sign = [made("-", "SIGN", taken[0], taken[0])] if value.value < 0 else []
    text = f"{abs(value.value)}" + ("U" if value.unsigned else "")
    return [*sign, made(text, "NUMBER", taken[0], taken[-1])]


def _unary(cursor: Cursor, depth: int) -> Constant:
    """?unary: literal | (SIGN | NOT | COMPLEMENT) unary -> sign | "(" CAST ")" unary -> cast | "(" expression ")" """
    if not starts_constant(cursor, cursor.index):
        raise cursor.expected("a constant", "here")
    token = cursor.next()
    if token.type in ("NUMBER", "FLOAT", "IDENT"):
        return _literal(cursor, token)
    _check_depth(cursor, depth, token)
    if token.type == "(":
        typ = cursor.accept("QUALIFIER")
        if typ is not None:
            return _cast(cursor, token, typ, depth)
        value = constant(cursor, 0, depth + 1)
        cursor.take(")", "in the constant expression")
        return value
    value = _unary(cursor, depth + 1)
    if isinstance(value, Real):
        if token.type != "SIGN" or value.single is not None:
            raise cursor.error(f"`{token}` takes no such floating-point constant", token)
        return Real(-value.value) if token == "-" else value
    if token.type == "SIGN":
        return integer(-value.value, value.unsigned) if token == "-" else value
    return integer(~value.value, True) if token == "~" else Integer(int(value.value == 0))


def _cast(cursor: Cursor, token: Token, typ: Token, depth: int) -> Constant:
    if typ not in (".s64", ".u64"):
        raise cursor.error(f"a constant has no cast to `{clip(typ)}`", typ, "the casts are (.s64) and (.u64)")
    cursor.take(")", "after the type of the cast")
    value = _unary(cursor, depth + 1)
    if isinstance(value, Real):
        raise cursor.error("a floating-point constant has no cast to an integer", token)
    return integer(value.value, typ == ".u64")


def _literal(cursor: Cursor, token: Token) -> Constant:
    """literal: NUMBER | FLOAT | WARP_SZ"""
    if token.type == "IDENT":
        return Integer(WARP_SIZE)
    if token.type == "NUMBER":
        value = parse_integer(token)
        if value is None:
            raise cursor.error(f"`{clip(token)}` is not an integer constant of 64 bits", token)
        return Integer(value, token.endswith("U") or value >= _BITS >> 1)
    found = parse_float(f"0{token}" if token.startswith(".") else token)
    if found is None:
        raise cursor.error(f"the floating-point constant `{clip(token)}` is too large", token)
    bits, single = found
    if single:
        return Real(struct.unpack("<f", struct.pack("<I", bits))[0], bits)
    return Real(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _conditional(cursor: Cursor, test: Constant, depth: int) -> Constant:
    token = cursor.take("?", "here")
    first = constant(cursor, 0, depth + 1)
    cursor.take(":", "in the conditional expression")
    second = constant(cursor, 0, depth + 1)
    if isinstance(test, Real):
        raise cursor.error("the condition of `?:` must be an integer", token)
    chosen = first if test.value else second
    if isinstance(first, Integer) and isinstance(second, Integer):
        return integer(int(chosen.value), first.unsigned or second.unsigned)
    if isinstance(first, Integer) or isinstance(second, Integer):
        raise _mixed(cursor, token)
    return chosen


def _mixed(cursor: Cursor, token: Token) -> PtxmmError:
    return cursor.error(f"`{token}` takes two integers or two floating-point constants", token)


def _binary(cursor: Cursor, token: Token, left: Constant, right: Constant) -> Constant:
    sign = str(token)
    if isinstance(left, Real) and isinstance(right, Real):
        return _real_binary(cursor, token, left, right)
    if isinstance(left, Real) or isinstance(right, Real):
        raise _mixed(cursor, token)
    unsigned = left.unsigned or right.unsigned
    a, b = integer(left.value, unsigned).value, integer(right.value, unsigned).value
    if sign in _ARITHMETIC:
        return integer(_ARITHMETIC[sign](a, b), unsigned)
    if sign in _COMPARISONS:
        return Integer(int(_COMPARISONS[sign](a, b)))
    if sign in ("&&", "||"):
        return Integer(int(bool(a and b) if sign == "&&" else bool(a or b)))
    if sign in ("<<", ">>"):
        count = right.value % _BITS
        if count >= 64:  # "fully defined" (4.5.5), but not said how
            raise cursor.error(f"a constant of 64 bits is shifted by {count}", token, kind="unsupported")
        return integer(left.value << count if sign == "<<" else left.value >> count, left.unsigned)
    if b == 0:
        raise cursor.error("division of a constant by zero", token)
    if sign == "%":
        return integer(left.value % _BITS % (right.value % _BITS), False)
    quotient = abs(a) // abs(b)
    return integer(quotient if (a < 0) == (b < 0) else -quotient, unsigned)


def _real_binary(cursor: Cursor, token: Token, left: Real, right: Real) -> Constant:
    sign, a, b = str(token), left.value, right.value
    if left.single is not None or right.single is not None:
        hint = "write it in decimal or as 0d..."
        raise cursor.error("a single-precision constant cannot be part of an expression", token, hint)
    if sign in _COMPARISONS:
        return Integer(int(_COMPARISONS[sign](a, b)))
    if sign in _REAL and (sign != "/" or b != 0):
        return Real(_REAL[sign](a, b))
    raise cursor.error("division of a constant by zero" if sign == "/" else f"`{sign}` takes integers", token)
