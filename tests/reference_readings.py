"""The readings of the text that the reference knows, written down by hand: nothing here comes from the models."""

from __future__ import annotations

from collections.abc import Mapping

Readings = Mapping[str, str]
"""A value for every key."""

DEFAULT = {
    "fence-proxy": "generic",
    "scploc": "global",
    "po-proxy": "same",
    "co": "transitive",
    "pattern-location": "virtual",
    "alias-fence": "path",
    "tear": "off",
    "b128": "scalar",
    "vector": "elements",
    "cas-failure": "none",
    "release-read": "on",
    "red": "link",
    "middle": "any",
    "sc-acqrel": "on",
    "dep": "value",
    "rmw-dep": "on",
    "warpsync": "on",
    "cluster-relaxed": "fence",
    "mbarrier": "phase",
    "proxy-locality": "cta",
    "read-fence": "on",
    "issue": "step",
    "stasync": "generic",
    "proxy-war": "fence",
    "tcgen05-wait": "fence",
    "tensormap-sync": "tensormap",
    "tmwar": "on",
    "atomic": "operation",
    "proxy-restrict": "pair",
    "reduce-proxy": "literal",
    "api-tensormap": "on",
    "griddep": "direct",
    "wgmma-mov": "access",
}

OWN = {"ptx-8.5": {"tear": "on"}, "ptx-7.5": {"atomic": "halves"}, "ptx-6.0": {"atomic": "halves"}, "sc": {}}
"""What a model has by default instead."""


def read(model: str) -> tuple[str, Readings]:
    """The model and the readings that ``ptx-8.5[key=value,...]`` names."""
    name, _, rest = model.partition("[")
    chosen = dict(item.split("=") for item in rest.removesuffix("]").split(",") if item)
    assert chosen.keys() <= DEFAULT.keys()
    return name, DEFAULT | OWN[name] | chosen
