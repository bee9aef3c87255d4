"""Functions that modules only declare: what a call of each is taken for."""

from __future__ import annotations

HARMLESS = ("vprintf",)
ENDS = ("__assertfail", "__trap", "abort")
# What nvcc -G leaves as calls (CUDA C++ Programming Guide 10.5, 10.6, 10.14); (opcode and type, operands).
ATOMICS = {
    f"__{letter}Atomic{name}": f"atom.{op}.{type_}"
    for letter, types in (("u", "u32"), ("i", "s32"), ("ull", "u64"))
    for name, op in (
        ("Add", "add"), ("Exch", "exch"), ("CAS", "cas"), ("Min", "min"), ("Max", "max"), ("And", "and"),
        ("Or", "or"), ("Xor", "xor"), ("Inc", "inc"), ("Dec", "dec"),
    )
    for type_ in ("b" + types[1:] if op in ("exch", "cas", "and", "or", "xor") else types,)
}  # fmt: skip
INTRINSICS = {
    "__syncthreads": "bar.sync 0",
    "__threadfence": "membar.gl",
    "__threadfence_block": "membar.cta",
    "__threadfence_system": "membar.sys",
}
