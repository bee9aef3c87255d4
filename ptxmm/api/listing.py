"""Listings of tests that show themselves."""

from __future__ import annotations

from ptxmm.api.shown import Shown
from ptxmm.render import listing


class Listing(Shown, listing.Listing, frozen=True):
    __doc__ = listing.Listing.__doc__
    _KIND = "show"

    def rows(self) -> list[dict[str, object]]:
        """A row for each instruction."""
        return [
            {"thread": thread.thread, "label": item.label, "instruction": item.text, "target": item.target}
            for thread in self.threads
            for item in thread.instructions
        ]
