"""Integer, logic and bit-field instructions, bit by bit as the ISA writes them (PTX ISA 9.7.1, 9.7.2, 9.7.9, 9.7.10).

What is here is what ``values.arithmetic`` has not got itself; operands are unsigned numbers of their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxmm.errors import PtxmmError
from ptxmm.ptx.ops import Type

_NONE = 0xFFFFFFFF


def compute_bits(op: str, type_: Type, operands: list[int]) -> int:
    """The unsigned result of ``op`` in ``type_``, as wide as it is. Raises ``PtxmmError`` for another operation."""
    name, *modes = op.split(".")
    operation = _OPERATIONS.get(name)
    if operation is None:
        raise PtxmmError(f"no integer operation {op!r}", kind="internal")
    return operation(name, type_, modes, *operands)


def _sum(name: str, type_: Type, modes: list[str], a: int, *rest: int) -> int:
    """Addition and subtraction: saturated, of two halves, or with carry (9.7.1.1, 9.7.1.2, 9.7.2.1 to .4)."""
    ones = (1 << type_.bits) - 1
    if modes == ["sat"]:
        x, y = _integers(type_, a, rest[0])
        return _clamp(x + y if name == "add" else x - y) & ones
    if modes not in ([], ["cc"]):
        return _halves(name, modes, a, rest[0])
    total = a + sum(rest) if name.startswith("add") else a - sum(rest)
    return int(total != total & ones) if modes else total & ones


def _extremum(name: str, type_: Type, modes: list[str], a: int, b: int) -> int:
    """The least or the greatest: of two halves, or 0 where it is negative (9.7.1.12, .13)."""
    if modes != ["relu"]:
        return _halves(name, modes, a, b)
    x, y = _integers(type_, a, b)
    return max(0, min(x, y) if name == "min" else max(x, y))


def _multiply_add(name: str, type_: Type, modes: list[str], a: int, *rest: int) -> int:
    if modes == ["hi", "sat"]:
        x, y, z = _integers(type_, a, *rest)
        return _clamp((x * y >> 32) + z) & (1 << type_.bits) - 1
    return _multiply_with_carry(type_, modes, a, list(rest))


def _difference(type_: Type, a: int, b: int, c: int) -> int:
    x, y = _integers(type_, a, b)
    return (c + (y - x if x < y else x - y)) & (1 << type_.bits) - 1


def _integer(type_: Type, value: int) -> int:
    return value - ((value >> (type_.bits - 1) & 1) << type_.bits) if type_.signed else value


def _integers(type_: Type, *values: int) -> list[int]:
    return [_integer(type_, value) for value in values]


def _clamp(number: int, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> int:
    return low if number < low else high if number > high else number


def _halves(name: str, modes: list[str], a: int, b: int) -> int:
    """Two halves side by side (9.7.1.1, 9.7.1.12)."""
    half = Type(modes[-1][0], 16)
    result = 0
    for shift in (16, 0):
        x, y = _integers(half, a >> shift & 0xFFFF, b >> shift & 0xFFFF)
        found = {"add": x + y, "min": min(x, y), "max": max(x, y)}[name]
        if "relu" in modes and found < 0:
            found = 0
        result = result << 16 | found & 0xFFFF
    return result


def _multiply_with_carry(type_: Type, modes: list[str], a: int, rest: list[int]) -> int:
    x, y = _integers(type_, a, rest[0])
    ones = (1 << type_.bits) - 1
    part = (x * y >> (type_.bits if modes[0] == "hi" else 0)) & ones
    total = part + sum(rest[1:])
    return total >> type_.bits if modes[-1] == "cc" else total & ones


def _multiply24(type_: Type, modes: list[str], a: int, rest: list[int]) -> int:
    narrow = Type(type_.kind, 24)
    x, y = (_integer(narrow, value & 0xFFFFFF) for value in (a, rest[0]))
    part = (x * y >> (16 if modes[0] == "hi" else 0)) & 0xFFFFFFFF
    if len(rest) == 1:
        return part
    if modes[-1] == "sat":
        one, other = _integers(type_, part, rest[1])
        return _clamp(one + other) & 0xFFFFFFFF
    return (part + rest[1]) & 0xFFFFFFFF


def _divide(name: str, type_: Type, a: int, b: int) -> int:
    """The quotient towards zero, the remainder with the sign of the dividend. By 0 nothing is specified: what is given
    here is seen by no execution that has a meaning."""
    ones = (1 << type_.bits) - 1
    x, y = _integers(type_, a, b)
    if y == 0:
        return ones if name == "div" else a
    quotient, remainder = divmod(abs(x), abs(y))
    if name == "rem":
        return (-remainder if x < 0 else remainder) & ones
    return (quotient if (x < 0) is (y < 0) else -quotient) & ones


def _leading_zeros(bits: int, a: int) -> int:
    return next((i for i in range(bits) if a >> (bits - 1 - i) & 1), bits)


def _find(type_: Type, a: int, amount: bool) -> int:
    last = type_.bits - 1
    if type_.signed and a >> last & 1:
        a = ~a
    for i in range(last, -1, -1):
        if a >> i & 1:
            return last - i if amount else i
    return _NONE


def _find_nth(mask: int, base: int, offset: int) -> int:
    offset -= (offset >> 31) << 32
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else _NONE
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return _NONE


def _extract(type_: Type, a: int, b: int, c: int) -> int:
    last, position, length = type_.bits - 1, b & 0xFF, c & 0xFF
    sign = 0 if not type_.signed or length == 0 else a >> min(position + length - 1, last) & 1
    result = 0
    for i in range(type_.bits):
        bit = a >> (position + i) & 1 if i < length and position + i <= last else sign
        result |= bit << i
    return result


def _insert(bits: int, a: int, b: int, c: int, d: int) -> int:
    position, length = c & 0xFF, d & 0xFF
    for i in range(min(length, max(0, bits - position))):
        b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return b


def _extend(type_: Type, mode: str, a: int, b: int) -> int:
    width = b & 0x1F
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else (0xFFFFFFFF << width) & 0xFFFFFFFF
    position = (width - 1) & 0x1F
    sign = not (width == 0 or too_large or not type_.signed) and a >> position & 1
    return (a & ~mask) | (mask if sign else 0)


def _mask(mode: str, a: int, b: int) -> int:
    ones = 0xFFFFFFFF
    start, width = a & 0x1F, b & 0x1F
    low, high = ones << start & ones, ones << (start + width) & ones
    clamp = mode == "clamp"
    if clamp and a >= 32:
        low = 0
    if start + width >= 32 or (clamp and (a >= 32 or b >= 32)):
        high = 0
    elif width == 0:
        high = ones
    return low & ~high


def _dot(name: str, type_: Type, modes: list[str], a: int, rest: list[int]) -> int:
    b, total = rest
    other = Type(modes[-1][0], 8)
    count, width, skip = (4, 8, 0) if name == "dp4a" else (2, 16, 2 if modes[0] == "hi" else 0)
    own = Type(type_.kind, width)
    for i in range(count):
        x = _integer(own, a >> (width * i) & ((1 << width) - 1))
        total += x * _integer(other, b >> (8 * (i + skip)) & 0xFF)
    return total & 0xFFFFFFFF


def _look_up(modes: list[str], operands: list[int]) -> int:
    """Bit i of the result is the entry of the table that the bits i of a, b and c number (9.7.9.6)."""
    a, b, c, table = operands[:4]
    result = 0
    for i in range(32):
        row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
        result |= (table >> row & 1) << i
    if not modes:
        return result
    q = bool(operands[4])
    return int((result != 0 and q) if modes == ["and"] else (result != 0 or q))


def _funnel(modes: list[str], a: int, b: int, c: int) -> int:
    n = min(c, 32) if modes[1] == "clamp" else c & 0x1F
    word = (b << n | a >> (32 - n)) if modes[0] == "l" else (b << (32 - n) | a >> n)
    return word & 0xFFFFFFFF


# The table of 9.7.10.7: for each mode and each value of the selector the bytes d.b3 d.b2 d.b1 d.b0.
_SELECTIONS = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def _permute(modes: list[str], a: int, b: int, c: int) -> int:
    control = int(_SELECTIONS[modes[0]][c & 3], 16) if modes else c
    result = 0
    for place in range(4):
        selector = control >> (4 * place)
        byte = (a | b << 32) >> (8 * (selector & 7)) & 0xFF
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * place)
    return result


def _pack(part: str, a: int, b: int, c: int = 0) -> int:
    size = int(part[1:])
    low, high = (0, (1 << size) - 1) if part[0] == "u" else (-(1 << (size - 1)), (1 << (size - 1)) - 1)
    upper, lower = (_clamp(x, low, high) & ((1 << size) - 1) for x in _integers(Type("s", 32), a, b))
    return (c << (2 * size) | upper << size | lower) & 0xFFFFFFFF


_OPERATIONS: Mapping[str, Callable[..., int]] = {
    **dict.fromkeys(("add", "addc", "sub", "subc"), _sum),
    **dict.fromkeys(("min", "max"), _extremum),
    **dict.fromkeys(("mad", "madc"), _multiply_add),
    **dict.fromkeys(("mul24", "mad24"), lambda name, type_, modes, a, *rest: _multiply24(type_, modes, a, list(rest))),
    **dict.fromkeys(("div", "rem"), lambda name, type_, modes, a, b: _divide(name, type_, a, b)),
    **dict.fromkeys(("dp4a", "dp2a"), lambda name, type_, modes, a, *rest: _dot(name, type_, modes, a, list(rest))),
    "sad": lambda name, type_, modes, a, b, c: _difference(type_, a, b, c),
    "popc": lambda name, type_, modes, a: sum(a >> i & 1 for i in range(type_.bits)),
    "clz": lambda name, type_, modes, a: _leading_zeros(type_.bits, a),
    "bfind": lambda name, type_, modes, a: _find(type_, a, modes == ["shiftamt"]),
    "fns": lambda name, type_, modes, a, b, c: _find_nth(a, b, c),
    "brev": lambda name, type_, modes, a: sum((a >> i & 1) << (type_.bits - 1 - i) for i in range(type_.bits)),
    "bfe": lambda name, type_, modes, a, b, c: _extract(type_, a, b, c),
    "bfi": lambda name, type_, modes, a, b, c, d: _insert(type_.bits, a, b, c, d),
    "szext": lambda name, type_, modes, a, b: _extend(type_, modes[0], a, b),
    "bmsk": lambda name, type_, modes, a, b: _mask(modes[0], a, b),
    "cnot": lambda name, type_, modes, a: 0 if a else 1,
    "lop3": lambda name, type_, modes, *operands: _look_up(modes, list(operands)),
    "shf": lambda name, type_, modes, a, b, c: _funnel(modes, a, b, c),
    "prmt": lambda name, type_, modes, a, b, c: _permute(modes, a, b, c),
    "cvt": lambda name, type_, modes, *operands: _pack(modes[1], *operands),
}
"""Each instruction by its name, type, further qualifiers and operands."""
