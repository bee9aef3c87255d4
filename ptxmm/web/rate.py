"""How often an address may ask."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address, ip_network

_KNOWN = 10_000
"""So many addresses are remembered; the one that asked the longest ago is forgotten first."""


class Rate:
    """``minute``: requests a minute, and as many at once after a minute without any."""

    def __init__(self, minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._minute, self._clock = minute, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Whether a request from ``address`` may be answered now; if so it counts."""
        key, now = _network(address), self._clock()
        left, seen = self._left.pop(key, (float(self._minute), now))
        left = min(float(self._minute), left + (now - seen) * self._minute / 60)
        allowed = left >= 1
        self._left[key] = (left - allowed, now)
        if len(self._left) > _KNOWN:
            self._left.popitem(last=False)
        return allowed


def _network(address: str) -> str:
    """An IPv4 address; of IPv6, the network that one user has."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return address if found.version == 4 else str(ip_network((int(found), 64), strict=False))
