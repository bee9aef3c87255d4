"""Synchronization objects of libcu++ in global memory, as a launch writes them: ``cuda::barrier(2)``.

Their layout is that of the headers of CUDA 13.0 (``cuda/std/__barrier/barrier.h``, ``__latch/latch.h``,
``__semaphore/atomic_semaphore.h``, ``__atomic``): one word each. ``tests/modules/nvcc/libcu.cu`` has what nvcc makes of
them.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ptxmm.formats.initializers import TYPES
from ptxmm.ptx.ops import Type

_WRITTEN = re.compile(
    r"cuda::(?:std::)?(?P<name>atomic|barrier|latch|counting_semaphore|binary_semaphore)"
    r"\s*(?:<(?P<of>[^()<>]*)>)?\s*(?:\((?P<value>[^()]*)\))?"
)
_SCOPE = re.compile(r"(?:cuda::)?(?:std::)?thread_scope_(?:thread|block|device|system)")
_ELEMENTS = {
    "bool": "u8", "char": "s8", "signed char": "s8", "unsigned char": "u8", "short": "s16", "unsigned short": "u16",
    "int": "s32", "unsigned": "u32", "unsigned int": "u32", "long": "s64", "unsigned long": "u64", "long long": "s64",
    "unsigned long long": "u64", "float": "f32", "double": "f64",
}  # fmt: skip
_U64, _S64, _S32 = Type("u", 64), Type("s", 64), Type("s", 32)
_MOST = (1 << 31) - 1
EXAMPLES = (
    "cuda::barrier(2), cuda::latch(2), cuda::counting_semaphore(1), cuda::binary_semaphore(1), cuda::atomic<u32>(0)"
)


class NotLibrary(Exception):
    """A text that begins like an object of libcu++ and is none."""


class LibraryType(Struct, frozen=True):
    """An object of libcu++: the ``type`` of its word; ``least`` and ``most``: what it may be constructed with, None for
    an atomic, which may have any value; ``default``: the value without one."""

    name: str
    type: Type
    least: int | None
    most: int | None
    default: int | None

    def word(self, value: float | str) -> float | str:
        """The word of an object that is constructed with ``value``. Raises ``NotLibrary``."""
        if self.least is None or self.most is None:
            return value
        if not isinstance(value, int) or not self.least <= value <= self.most:
            raise NotLibrary(f"a cuda::{self.name} is made of a number from {self.least} to {self.most}, not {value}")
        if self.name == "barrier":  # those that are still to arrive, and those that are expected, both below 2**31
            return ((1 << 31) - value) << 32 | ((1 << 31) - value)
        return value


def library_type(text: str) -> tuple[LibraryType, str | None] | None:
    """The type that ``text`` names and what it is constructed with; None for other texts. Raises ``NotLibrary``."""
    if not text.startswith("cuda::"):
        return None
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise NotLibrary(f"`{text}` is not an object of libcu++ that is known")
    arguments = [part.strip() for part in (match["of"] or "").split(",") if part.strip()]
    given = [part for part in arguments if not _SCOPE.fullmatch(part)]
    name, value = match["name"], match["value"]
    if name == "atomic":
        if len(given) != 1:
            raise NotLibrary(f"`{text}` does not say of what type it is")
        return LibraryType(name, _element(given[0]), None, None, 0), value
    bound = given[0] if name == "counting_semaphore" and given and given[0].isdigit() else None
    if given and [bound] != given:
        raise NotLibrary(f"`{text}`: `{given[0]}` is not known there")
    if name == "binary_semaphore" or bound == "1":
        return LibraryType("binary_semaphore", _S32, 0, 1, 0), value
    if name == "counting_semaphore":
        return LibraryType(name, _S64, 0, int(bound or _MOST), 0), value
    return LibraryType(name, _U64 if name == "barrier" else _S64, 0, _MOST, None), value


def _element(name: str) -> Type:
    """The type of the word of an atomic of ``name``: at least 32 bits."""
    plain = re.sub(r"^(?:std::|cuda::std::)?u?int(\d+)_t$", lambda m: ("u" if "uint" in m[0] else "s") + m[1], name)
    found = TYPES.get("." + _ELEMENTS.get(plain, plain))
    if found is None or found.kind == "pred":
        raise NotLibrary(f"`{name}` is not the type of an atomic")
    return Type(found.kind, 32) if found.bits < 32 and found.kind in "bus" else found
