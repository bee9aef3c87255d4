"""Tensor maps of a launch: in the words of the litmus format, or in those of ``cuTensorMapEncodeTiled``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ptxmm.formats.modules.table import Table, integer
from ptxmm.program.naming import did_you_mean
from ptxmm.ptx.ops import Type

ENCODED = "CUtensorMap"
"""The type of an object that is described in the words of the driver."""
_DATA_TYPES = {
    "UINT8": Type("u", 8), "UINT16": Type("u", 16), "UINT32": Type("u", 32), "INT32": Type("s", 32),
    "UINT64": Type("u", 64), "INT64": Type("s", 64), "FLOAT16": Type("f", 16), "FLOAT32": Type("f", 32),
    "FLOAT64": Type("f", 64), "BFLOAT16": Type("bf", 16),
}  # fmt: skip
_CHANGING = ("FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B")
_LAYOUT = {"interleave": "INTERLEAVE", "swizzle": "SWIZZLE", "oobFill": "FLOAT_OOB_FILL"}
_NEEDED = ("tensorDataType", "globalAddress", "globalDim", "boxDim")
_KNOWN = ("type", "tensorRank", *_NEEDED, "globalStrides", "elementStrides", *_LAYOUT, "l2Promotion")


class TensorMapSpec(Struct, frozen=True):
    """A tensor map (PTX ISA 5.5): see ``program.test.TensorMap``."""

    target: str
    type: Type
    box: tuple[int, ...]
    dims: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    steps: tuple[int, ...] | None


def tensormap_of(table: Table, name: str, value: object) -> TensorMapSpec:
    """The tensor map that ``value``, the ``tensormap`` of the object ``name``, describes. Raises ``PtxmmError``."""
    known = {"target", "type", "box", "dims", "strides", "steps"}
    if not isinstance(value, dict) or not {"target", "type", "box"} <= value.keys() <= known:
        raise table.error(name, "a tensor map has target, type, box and perhaps dims, strides, steps")
    target, word = value["target"], value["type"]
    if not isinstance(target, str):
        raise table.error(name, "the target of a tensor map is an object")
    type_ = table.type(name, word)
    box = _numbers(table, name, value, "box") or ()
    dims, strides, steps = (_numbers(table, name, value, key) for key in ("dims", "strides", "steps"))
    rank = len(box)
    counts = {"dims": (dims, rank), "strides": (strides, rank - 1), "steps": (steps, rank)}
    _counted(table, name, f"a box of {rank}", counts)
    if dims is None and len(box) > 1:
        raise table.error(name, "a tensor of several dimensions needs `dims`", "as in box = [4, 2], dims = [8, 6]")
    return TensorMapSpec(target, type_, box, dims, strides, steps)


def encoded(table: Table, name: str, value: Mapping[str, Any]) -> TensorMapSpec:
    """The tensor map that ``cuTensorMapEncodeTiled`` makes of the arguments that ``value`` has by their names (CUDA
    Driver API). Raises ``PtxmmError`` (kind ``unsupported`` for what is not modelled)."""
    for key in value:
        if key not in _KNOWN:
            every = "it has the arguments of cuTensorMapEncodeTiled: " + ", ".join(_KNOWN[1:])
            raise table.error(name, f"a {ENCODED} has no `{key}`", did_you_mean(key, _KNOWN) or every)
    missing = [key for key in _NEEDED if key not in value]
    if missing:
        raise table.error(name, f"a {ENCODED} needs `{missing[0]}`", "as the arguments of cuTensorMapEncodeTiled")
    for key, prefix in _LAYOUT.items():
        word = _word(table, name, value, key, prefix)
        if word not in (None, "NONE"):
            message = f"`{key}` of a tensor map can only be NONE: {word} is not modelled"
            raise table.error(name, message, kind="unsupported")
    type_ = _data_type(table, name, _word(table, name, value, "tensorDataType", "DATA_TYPE"))
    target = value["globalAddress"]
    if not isinstance(target, str):
        raise table.error(name, "`globalAddress` of a tensor map is an object")
    box, dims, strides, steps = (
        _numbers(table, name, value, key) for key in ("boxDim", "globalDim", "globalStrides", "elementStrides")
    )
    assert box is not None and dims is not None
    rank = table.number(value, "tensorRank", 1, 5, name) or len(dims)
    if rank == 1:
        strides = None  # the driver reads none
    counts = {"globalDim": (dims, rank), "globalStrides": (strides, rank - 1), "boxDim": (box, rank)}
    _counted(table, name, f"a tensor of {rank}", counts | {"elementStrides": (steps, rank)})
    if rank > 1 and strides is None:
        raise table.error(name, f"a tensor of {rank} dimensions needs {rank - 1} of `globalStrides`, in bytes")
    return TensorMapSpec(target, type_, box, dims, strides, steps)


def _data_type(table: Table, name: str, word: str | None) -> Type:
    if word in _CHANGING:
        message = f"tensors of {word} are not supported: copies of them change values"
        raise table.error(name, message, kind="unsupported")
    if word not in _DATA_TYPES:
        hint = did_you_mean(str(word), list(_DATA_TYPES)) or "known are " + ", ".join(_DATA_TYPES)
        raise table.error(name, f"`{word}` is not a type of tensors", hint)
    return _DATA_TYPES[word]


def _counted(table: Table, name: str, what: str, lists: Mapping[str, tuple[tuple[int, ...] | None, int]]) -> None:
    """Refuse ``lists`` of numbers, by their keys, that have not as many as they need."""
    for key, (found, wanted) in lists.items():
        if found is not None and len(found) != wanted:
            raise table.error(name, f"{what} dimensions needs {wanted} of `{key}`, not {len(found)}")


def _word(table: Table, name: str, value: Mapping[str, Any], key: str, prefix: str) -> str | None:
    """An enumerator, in full or without what all of its kind begin with."""
    found = value.get(key)
    if found is not None and not isinstance(found, str):
        raise table.error(name, f"`{key}` of a tensor map is a word", f'as in {key} = "CU_TENSOR_MAP_{prefix}_NONE"')
    return None if found is None else found.removeprefix(f"CU_TENSOR_MAP_{prefix}_")


def _numbers(table: Table, name: str, value: Mapping[str, Any], key: str) -> tuple[int, ...] | None:
    if key not in value:
        return None
    found = [integer(item) for item in (value[key] if isinstance(value[key], list) else [value[key]])]
    if None in found or (not found and key != "globalStrides"):
        raise table.error(name, f"`{key}` of a tensor map is a list of numbers, innermost dimension first")
    return tuple(n for n in found if n is not None)
