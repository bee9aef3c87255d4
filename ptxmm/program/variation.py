"""Instructions that take one of several forms, as a set of switches decides."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from ptxmm.program.identity import Switch
from ptxmm.ptx.ops import Op


class Variation(Struct, frozen=True):
    """The forms that an instruction may take, each with the switches that it needs.

    It has the form whose switches are all on and whose set of switches is the largest: of any two forms
    whose switches are on, some third that needs all of both must be there, or one of them does. ``forms`` begins with
    one that needs none; None stands for no instruction. All forms have the same events, with the same values: only
    the order, the scope or the kind of a fence differ. Instructions at several sites may share switches.
    """

    forms: tuple[tuple[Op | None, frozenset[Switch]], ...]

    def at(self, on: Collection[Switch]) -> Op | None:
        """The form that exactly the switches ``on`` make."""
        return max((form for form in self.forms if form[1].issubset(on)), key=lambda form: len(form[1]))[0]
