"""When an instruction has which of its forms, as formulas over switches: one problem stands for many programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.symbolic.event import Event
from ptxmm.program.identity import Site, Switch
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import Op
from ptxmm.relations.formula import TRUE, Formula, Formulas


class Alternatives(Struct, frozen=True):
    """The variations of a program. ``switches``: the variable of each; ``forms``: those of each site, and when."""

    switches: Mapping[Switch, Formula]
    forms: Mapping[Site, tuple[tuple[Op | None, Formula], ...]]

    def of(self, event: Event) -> Iterator[tuple[Event, Formula]] | None:
        """``event`` in every form in which there is one, and when it has it; None where it does not vary."""
        forms = self.forms.get(event.id.site)
        if forms is None:
            return None
        return ((replace(event, op=op), when) for op, when in forms if op is not None)

    def there(self, event: Event, formulas: Formulas) -> Formula:
        """When there is an instruction at all in the place of that of ``event``."""
        forms = self.forms.get(event.id.site, ())
        return formulas.any([when for op, when in forms if op is not None]) if forms else TRUE


NONE = Alternatives({}, {})


def alternatives(formulas: Formulas, variations: Mapping[Site, Variation]) -> Alternatives:
    """New switches for ``variations``, and when each form is taken."""
    switches: dict[Switch, Formula] = {}
    forms: dict[Site, tuple[tuple[Op | None, Formula], ...]] = {}
    for site, variation in variations.items():
        for switch in sorted(set[Switch]().union(*(needs for _, needs in variation.forms))):
            if switch not in switches:
                switches[switch] = formulas.variable()
        on = {needs: formulas.all([switches[s] for s in needs]) for _, needs in variation.forms}
        forms[site] = tuple(
            (op, formulas.all([on[needs], *(-on[more] for _, more in variation.forms if more > needs)]))
            for op, needs in variation.forms
        )
    return Alternatives(switches, forms)
