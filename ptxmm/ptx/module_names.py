"""The names of a module and of its functions (PTX ISA 4.4, 5.1): scopes, and one unique name for each entity."""

from __future__ import annotations

import re

from msgspec import Struct

from ptxmm.ptx.module_tokens import Cursor
from ptxmm.ptx.operands import SPECIAL_REGISTERS
from ptxmm.ptx.origin import clip
from ptxmm.tokens import Token

_NUMBERED = re.compile(r"pm[0-7](_64)?|envreg[0-9]{1,2}|reserved_smem_offset_(end|cap|[01])")


class Kind(Struct, frozen=True):
    """What kind of entity a name is: ``register variable label function``; of a vector register also its number of
    ``lanes``, of a variable the bytes from one element to the next."""

    word: str
    lanes: int = 0
    stride: int = 1


class Entity(Struct, frozen=True):
    """What a name stands for. ``text`` is its unique name, with ``%`` if it was declared with one."""

    text: str
    kind: Kind
    scope: int


class Names:
    """The entities that can be named where the reader is; scopes nest in any depth, so they are no chain of tables but
    one table with what to restore at the end of each scope."""

    __slots__ = (
        *("_counters", "_entities", "_local", "_missing", "_module", "_reserved", "_restore", "_scope", "_scopes"),
        "_vectors",
    )

    def __init__(self, cursor: Cursor) -> None:
        self._entities: dict[str, Entity] = {}
        self._module: set[str] = set()
        self._local: set[str] = set()
        self._counters: dict[str, int] = {}
        self._restore: list[tuple[int, list[tuple[str, Entity | None]]]] = []
        self._scope = self._scopes = 0
        self._missing: dict[str, Token] = {}
        # What the special registers that the module reads are called without `%`, and those read by component.
        self._reserved = {"WARP_SZ", "_"}
        self._vectors: set[str] = set()
        for token, after in zip(cursor.tokens, cursor.types[1:], strict=False):
            if _special(token):
                (self._vectors if after == "QUALIFIER" else self._reserved).add(token[1:])

    def enter(self) -> None:
        """Begin a scope: that of a function, or one nested in it."""
        self._restore.append((self._scope, []))
        self._scopes += 1
        self._scope = self._scopes

    def leave(self) -> None:
        """End the scope that began last."""
        self._scope, undone = self._restore.pop()
        for text, entity in reversed(undone):
            if entity is None:
                del self._entities[text]
            else:
                self._entities[text] = entity
        if not self._restore:
            self._local.clear()
            self._counters.clear()
            self._missing.clear()

    def declare(self, text: str, kind: Kind) -> Entity | None:
        """Declare ``text`` in the scope that began last. None if the scope has that name already."""
        previous = self._entities.get(text)
        if previous is not None and previous.scope == self._scope:
            return None
        entity = Entity(self._unique(text, kind), kind, self._scope)
        if self._restore:
            self._restore[-1][1].append((text, previous))
            self._local.add(entity.text.lstrip("%"))
        else:
            self._module.add(entity.text.lstrip("%"))
        self._entities[text] = entity
        return entity

    def find(self, text: str) -> Entity | None:
        """What ``text`` stands for here."""
        return self._entities.get(text)

    def missing(self, token: Token) -> None:
        """Note that ``token`` names nothing here; ``check`` looks at it again when all declarations are known."""
        if not _special(token):
            self._missing.setdefault(token.lstrip("%"), token)

    def check(self, cursor: Cursor) -> None:
        """At the end of a function, before its scope ends: a name that was not declared where it is used must not be
        that of another entity. (Names that are declared nowhere, and special registers, are left as they are.) Raises
        ``PtxmmError``."""
        for name, token in self._missing.items():
            if name in self._local:
                message = f"`{clip(str(token))}` is declared only later or in another scope"
                raise cursor.error(message, token, "declare it before, in a scope that contains this", "name")

    def _unique(self, text: str, kind: Kind) -> str:
        base = text.lstrip("%")
        free = base not in self._local and base not in self._module and base not in self._reserved
        if free and not (kind.lanes and base in self._vectors):
            return text
        count = self._counters.get(base, 0)
        while True:
            count += 1
            name = f"{base}${count}"
            if name not in self._local and name not in self._module:
                self._counters[base] = count
                return text[: len(text) - len(base)] + name


def _special(token: Token) -> bool:
    """Whether ``token`` is the name of a special register (PTX ISA 10)."""
    return token[:1] == "%" and (token[1:] in SPECIAL_REGISTERS or _NUMBERED.fullmatch(token, 1) is not None)
