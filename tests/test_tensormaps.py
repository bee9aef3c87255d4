"""Tensor maps in the words of ``cuTensorMapEncodeTiled``."""

from __future__ import annotations

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.arguments import ObjectSpec
from ptxmm.formats.modules.launch import parse_launches
from ptxmm.program.shared.tensors import field_borders, field_start

FULL = {
    "type": '"CUtensorMap"', "tensorDataType": '"CU_TENSOR_MAP_DATA_TYPE_FLOAT16"', "tensorRank": "2",
    "globalAddress": '"x"', "globalDim": "[16, 8]", "globalStrides": "[32]", "boxDim": "[8, 4]",
    "elementStrides": "[1, 2]", "interleave": '"CU_TENSOR_MAP_INTERLEAVE_NONE"', "swizzle": '"NONE"',
    "l2Promotion": '"CU_TENSOR_MAP_L2_PROMOTION_L2_128B"', "oobFill": '"CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"',
}  # fmt: skip


def made(value: str) -> ObjectSpec:
    (launch,) = parse_launches(f"[objects]\nmap = {value}\n", "k.toml")
    return launch.objects[0]


def encoded(**changes: str | None) -> str:
    """The description with some of its arguments changed or left out."""
    return (
        "{ " + ", ".join(f"{key} = {value}" for key, value in {**FULL, **changes}.items() if value is not None) + " }"
    )


def test_they_say_the_same() -> None:
    """Both forms of a tensor map are one object, but for where they stand."""
    other = (
        '{ tensormap = { target = "x", type = "f16", box = [8, 4], dims = [16, 8], strides = [32], steps = [1, 2] } }'
    )
    assert made(encoded()) == made(other)
    short = encoded(
        tensorDataType='"UINT32"', tensorRank=None, globalDim="[16]", globalStrides="[]", boxDim="[8]",
        elementStrides=None, interleave=None, swizzle=None, l2Promotion=None, oobFill=None,
    )  # fmt: skip
    assert made(short) == made('{ tensormap = { target = "x", type = "u32", box = [8], dims = [16] } }')
    # Of one dimension the driver reads no stride, whatever it is.
    assert made(short.replace("globalStrides = []", "globalStrides = [64]")) == made(short)


@pytest.mark.parametrize(
    ("changes", "message", "hint", "kind"),
    [
        ({"boxdim": "[8]"}, "a CUtensorMap has no `boxdim`", "did you mean `boxDim`?", "format"),
        ({"globalAddress": None}, "a CUtensorMap needs `globalAddress`",
         "as the arguments of cuTensorMapEncodeTiled", "format"),
        ({"boxDim": None}, "a CUtensorMap needs `boxDim`", "as the arguments of cuTensorMapEncodeTiled", "format"),
        ({"tensorDataType": '"FLOAT17"'}, "`FLOAT17` is not a type of tensors", "did you mean `FLOAT16`?", "format"),
        ({"tensorDataType": '"CU_TENSOR_MAP_DATA_TYPE_TFLOAT32"'},
         "tensors of TFLOAT32 are not supported: copies of them change values", None, "unsupported"),
        ({"swizzle": '"CU_TENSOR_MAP_SWIZZLE_128B"'},
         "`swizzle` of a tensor map can only be NONE: 128B is not modelled", None, "unsupported"),
        ({"interleave": '"32B"'}, "`interleave` of a tensor map can only be NONE: 32B is not modelled", None,
         "unsupported"),
        ({"oobFill": '"CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"'},
         "`oobFill` of a tensor map can only be NONE: NAN_REQUEST_ZERO_FMA is not modelled", None, "unsupported"),
        ({"swizzle": "0"}, "`swizzle` of a tensor map is a word", 'as in swizzle = "CU_TENSOR_MAP_SWIZZLE_NONE"',
         "format"),
        ({"tensorRank": "6"}, "`tensorRank` is a number from 1 to 5", None, "format"),
        ({"tensorRank": "3"}, "a tensor of 3 dimensions needs 3 of `globalDim`, not 2", None, "format"),
        ({"globalStrides": "[32, 64]"}, "a tensor of 2 dimensions needs 1 of `globalStrides`, not 2", None, "format"),
        ({"globalStrides": None}, "a tensor of 2 dimensions needs 1 of `globalStrides`, in bytes", None, "format"),
        ({"boxDim": "[8]"}, "a tensor of 2 dimensions needs 2 of `boxDim`, not 1", None, "format"),
        ({"elementStrides": "[1]"}, "a tensor of 2 dimensions needs 2 of `elementStrides`, not 1", None, "format"),
        ({"boxDim": '["a", 4]'}, "`boxDim` of a tensor map is a list of numbers, innermost dimension first", None,
         "format"),
        ({"globalDim": "[]"}, "`globalDim` of a tensor map is a list of numbers, innermost dimension first", None,
         "format"),
        ({"globalAddress": "7"}, "`globalAddress` of a tensor map is an object", None, "format"),
    ],
)  # fmt: skip
def test_mistakes(changes: dict[str, str | None], message: str, hint: str | None, kind: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        made(encoded(**changes))
    error = caught.value
    assert (error.message, error.hint, error.kind) == (message, hint, kind)
    assert (error.line, error.column, error.width) == (2, 1, 4)


def test_fields_of_one_of_several_in_an_object() -> None:
    """A workspace has one map behind the other: bytes of another one are no fields of this one."""
    assert field_start(11) == 8  # its rank
    assert field_borders({0, 4, 127, 132, 139, 256, 300}, 128) == {0, 4, 127, 128, 136, 256, 300}
