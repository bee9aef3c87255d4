"""The instruction table: for every instruction its legal qualifiers by group, operands, defaults and first version.

The rows are in ``tables/``; ``qualifiers.py`` and ``isa.py`` read them and nothing else knows what is legal.
Sources: PTX ISA 8.5 section 9.7, semantics table section 3. A group is a set of qualifiers of which an instruction has
at most one (two for the types of ``cvt``); the order of qualifiers is free (decision A43).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from msgspec import Struct

from ptxmm.ptx.qualified import Form
from ptxmm.ptx.tables import (
    arithmetic,
    copies,
    matrices,
    memory,
    mma,
    opaque,
    others,
    synchronization,
    tensorcore,
    wmma,
)
from ptxmm.ptx.tables.dialect import dialect_forms
from ptxmm.ptx.tables.form import Version
from ptxmm.ptx.tables.later import INSTRUCTIONS
from ptxmm.ptx.tables.memory import ATOMIC_TYPES

__all__ = [
    "ATOMIC_TYPES",
    "DIALECT",
    "FORMS",
    "OTHER_INSTRUCTIONS",
    "Form",
    "Row",
    "Version",
    "first_words",
    "rows_of",
]

FORMS: Mapping[str, Form] = MappingProxyType(
    {
        form.opcode: form
        for family in (memory, synchronization, copies, matrices, wmma, tensorcore, others, opaque, arithmetic, mma)
        for form in family.FORMS
    }
)
OTHER_INSTRUCTIONS = INSTRUCTIONS - FORMS.keys()
"""Those without a row; of an opcode whose rows have more words its other forms."""
DIALECT: Mapping[str, Form] = MappingProxyType({form.opcode: form for form in dialect_forms(FORMS)})


class Row(Struct, frozen=True):
    """A row with what ``qualifiers.py`` asks for each instruction: ``words``, the words of the row's name besides the
    first one, and the groups of each spelling."""

    words: frozenset[str]
    form: Form
    groups_of: Mapping[str, tuple[str, ...]]


def _row(form: Form) -> Row:
    groups_of: dict[str, tuple[str, ...]] = {}
    for group, spellings in form.groups.items():
        for spelling in spellings:
            groups_of[spelling] = (*groups_of.get(spelling, ()), group)
    return Row(frozenset(form.opcode.split(".")[1:]), form, MappingProxyType(groups_of))


@cache
def rows_of(first: str, dialect: bool) -> tuple[Row, ...]:
    """The rows whose name begins with the word ``first``, those with the most words first; () if there are none."""
    forms = (DIALECT if dialect else FORMS).values()
    rows = (_row(form) for form in forms if form.opcode.partition(".")[0] == first)
    return tuple(sorted(rows, key=lambda row: -len(row.words)))


def first_words(dialect: bool) -> frozenset[str]:
    """The first words of the names of all rows."""
    return frozenset(name.partition(".")[0] for name in (DIALECT if dialect else FORMS))
