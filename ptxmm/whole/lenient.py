"""What programs in use rely on though the text of the ISA does not say it: each has a name, which every answer tells.

- ``proxy-war=free``: a read by the generic proxy needs no proxy fence before a copy overwrites it (A56).
- ``wgmma-mov=free``: behind a ``wgmma.fence`` a copy gives the registers of a product their values as well (A63).
- ``tcgen05-wait=acquire``: what a thread issues of tcgen05 comes after a true wait that acquires (A54).
- ``issue=closure``: who knows that an asynchronous operation is done comes after what it came after, too (A35); a
  commit of tcgen05 frees the memory that a product has read for the next copy, which has to come after the last one.
- ``vector=whole``: what ``ld`` and ``st`` access of a vector is one access of up to 16 bytes (A57).
- ``destination-cta``: what a bulk copy writes in shared memory of another CTA of the cluster counts as done in that
  CTA, so that it is the same proxy in the same CTA which reads it there (8.9.5; the text does not say whose a
  ``.multicast`` is).
- ``arrives-again``: a warp that comes again to a barrier at which it has only arrived, before that is complete, counts
  again (9.7.14.1: "Execution in this case is unpredictable").
- ``exit-waits``: a CTA, and its shared memory with it, does not end before the bulk copies that its threads have
  issued have read that (5.1.7 does not say when it ends).
- ``elect-first``: ``elect.sync`` elects the lowest lane of its mask (9.7.14.14 does not say which).
- ``same-value-races``: copies of the same bytes to the same place may race (8.7.1 knows of no values).
- ``wgmma-sync``: what the threads of a warpgroup did before ``wgmma.wait_group`` is before what they do behind it,
  though 8.9.4 does not list it.
- ``warp-copy``: ``tensormap.cp_fenceproxy`` is one copy of its warp, behind what all of its lanes did before and before
  what they do behind it (9.7.14.16 says that they wait for each other, and not who copies).
- ``warp-wait``: lanes of a warp that come to a wait for an mbarrier together ask together, and get one answer
  (9.7.14.15.16 says nothing of a warp, and a lane that asks later may ask for another phase).
- ``active-together``: all lanes of a warp that come to an ``activemask`` execute it together (9.7.14.11 does not say
  which are active). So it leaves executions out, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.analysis.claims import assuming
from ptxmm.formats.modules.launch import (
    ACTIVE_TOGETHER,
    ARRIVES_AGAIN,
    DESTINATION_CTA,
    ELECT_FIRST,
    EXIT_WAITS,
    SAME_VALUE,
    WARP_COPY,
    WARP_WAIT,
    WGMMA_SYNC,
    Launch,
)

MODEL = "ptx-8.5"
PROXY_WAR, WGMMA_MOV, TENSOR_WAIT, ISSUE, VECTOR = "proxy-war", "wgmma-mov", "tcgen05-wait", "issue", "vector"
READINGS = {PROXY_WAR: "free", WGMMA_MOV: "free", TENSOR_WAIT: "acquire", ISSUE: "closure", VECTOR: "whole"}
"""Those that are readings, and their value."""
NOTES: Mapping[str, str] = MappingProxyType(
    {
        PROXY_WAR: "rests on proxy-war: proxy-war=free gives no race "
        "(these reads precede the copies, without a proxy fence)",
        WGMMA_MOV: "rests on wgmma-mov: wgmma-mov=free gives no race "
        "(what is undefined is copies of registers behind a wgmma.fence)",
        TENSOR_WAIT: "rests on tcgen05-wait: tcgen05-wait=acquire gives no race "
        "(operations of tcgen05 follow a wait that acquires without tcgen05.fence::after_thread_sync)",
        ISSUE: "rests on issue: issue=closure gives no race "
        "(who knows of an asynchronous operation knows of what it comes after, too)",
        VECTOR: "rests on vector: vector=whole gives no race "
        "(what is looked at is a vector, whose elements are found together)",
        DESTINATION_CTA: f"rests on {DESTINATION_CTA}: assumed in the launch it gives no race "
        "(what a copy writes in shared memory of another CTA, the async proxy reads there without a proxy fence)",
        ARRIVES_AGAIN: f"rests on {ARRIVES_AGAIN}: assumed in the launch it is defined "
        "(a warp that has arrived at a barrier and comes to it again counts again)",
        EXIT_WAITS: f"rests on {EXIT_WAITS}: assumed in the launch it is defined "
        "(a CTA ends when the bulk copies of its threads have read its shared memory)",
        ELECT_FIRST: f"rests on {ELECT_FIRST}: assumed in the launch it gives no race "
        "(the lowest lane of its mask is elected by elect.sync)",
        SAME_VALUE: f"rests on {SAME_VALUE}: assumed in the launch it gives no race "
        "(several threads write the same value there, or make the same copy)",
        WGMMA_SYNC: f"rests on {WGMMA_SYNC}: assumed in the launch it gives no race "
        "(wgmma.wait_group comes between, which all threads of the warpgroup execute)",
        WARP_WAIT: f"rests on {WARP_WAIT}: assumed in the launch it is decided "
        "(lanes of a warp that come to a wait for an mbarrier together get one answer)",
        ACTIVE_TOGETHER: f"rests on {ACTIVE_TOGETHER}: assumed in the launch it is decided "
        "(all lanes of a warp that come to an activemask execute it together)",
        WARP_COPY: f"rests on {WARP_COPY}: assumed in the launch it gives no race "
        "(tensormap.cp_fenceproxy copies once for the warp, and its lanes meet there)",
    }
)
"""What is said where a race is none if this is assumed."""


def assumed(launch: Launch) -> frozenset[str] | None:
    """What ``launch`` assumes of these; None where it assumes a reading that is not followed. Raises ``PtxmmError``
    (kind ``usage``) at its place in the launch for what is no reading."""
    assuming(launch.readings, MODEL)
    found = {name for name in NOTES if name not in READINGS and name in launch.assume}
    for reading in launch.readings:
        if reading.key not in READINGS:
            return None
        found |= {reading.key} if reading.value == READINGS[reading.key] else set()
    return frozenset(found)


def model(assumes: frozenset[str]) -> str:
    """The model with the readings among what is assumed."""
    chosen = ",".join(f"{key}={value}" for key, value in READINGS.items() if key in assumes)
    return f"{MODEL}[{chosen}]" if chosen else MODEL
