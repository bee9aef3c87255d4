"""The sets of qualifiers that many rows of the instruction table share, and versions."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Version(Struct, frozen=True, order=True):
    """The first PTX ISA version, as (major, minor), and the first target (``sm``) that have something."""

    ptx: tuple[int, int]
    sm: int = 0

    @property
    def name(self) -> str:
        """The PTX ISA version as it is written: ``8.6``."""
        return f"{self.ptx[0]}.{self.ptx[1]}"


def words(text: str) -> tuple[str, ...]:
    """The words of ``text``."""
    return tuple(text.split())


SCOPES = words("cta cluster gpu sys")
SHARED = words("shared shared::cta shared::cluster")
SHARED_CTA = words("shared shared::cta")
STRONG_SPACES = ("global", *SHARED)
EVICT = words("L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate")
PREFETCH = words("L2::64B L2::128B L2::256B")
HINT = ("L2::cache_hint",)
BITS = words("b16 b32 b64")
UNSIGNED = words("u16 u32 u64")
SIGNED = words("s16 s32 s64")
INTEGERS = UNSIGNED + SIGNED
MEMORY_TYPES = words("b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64")
COMPLETE_TX = "mbarrier::complete_tx::bytes"
V1 = Version((1, 0))
V6 = Version((6, 0), 70)
SM80 = Version((7, 0), 80)
CLUSTER = Version((7, 8), 90)
SM90 = Version((8, 0), 90)
V86 = Version((8, 6), 90)
SM100 = Version((8, 6), 100)


def union(types: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """All types of a mapping, each once, in order."""
    return tuple(dict.fromkeys(t for row in types.values() for t in row))
