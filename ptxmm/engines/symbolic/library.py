"""Z3's library, by those functions of its C interface that the solver of formulas needs.

Z3's own Python modules, which have all of them, take longer to load than a small test takes to decide.
"""

from __future__ import annotations

from ctypes import CDLL, POINTER, c_bool, c_char_p, c_int, c_uint, c_void_p
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

UNSATISFIABLE = -1
UNKNOWN = 0

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "get_app_decl": (c_void_p, c_void_p),
    "inc_ref": (None, c_void_p),
    "dec_ref": (None, c_void_p),
    "mk_bool_sort": (c_void_p,),
    "mk_const": (c_void_p, c_void_p, c_void_p),
    "mk_int_symbol": (c_void_p, c_int),
    "mk_not": (c_void_p, c_void_p),
    "mk_or": (c_void_p, c_uint, POINTER(c_void_p)),
    "mk_params": (c_void_p,),
    "mk_solver_for_logic": (c_void_p, c_void_p),
    "mk_string_symbol": (c_void_p, c_char_p),
    "mk_true": (c_void_p,),
    "model_inc_ref": (None, c_void_p),
    "model_dec_ref": (None, c_void_p),
    "model_get_const_interp": (c_void_p, c_void_p, c_void_p),
    "params_inc_ref": (None, c_void_p),
    "params_dec_ref": (None, c_void_p),
    "params_set_bool": (None, c_void_p, c_void_p, c_bool),
    "params_set_symbol": (None, c_void_p, c_void_p, c_void_p),
    "params_set_uint": (None, c_void_p, c_void_p, c_uint),
    "solver_assert": (None, c_void_p, c_void_p),
    "solver_inc_ref": (None, c_void_p),
    "solver_dec_ref": (None, c_void_p),
    "solver_check_assumptions": (c_int, c_void_p, c_uint, POINTER(c_void_p)),
    "solver_from_string": (None, c_void_p, c_char_p),
    "solver_get_model": (c_void_p, c_void_p),
    "solver_get_reason_unknown": (c_char_p, c_void_p),
    "solver_set_params": (None, c_void_p, c_void_p),
}
"""What each gives and takes (without ``Z3_`` and the context)."""


class Z3Error(Exception):
    """What Z3 says is wrong."""


class Library:
    """``library().mk_not(term)`` is ``Z3_mk_not`` in the context of this process. Raises ``Z3Error``."""

    def __init__(self) -> None:
        self._library = found = _loaded()
        found.Z3_mk_config.restype = found.Z3_mk_context_rc.restype = c_void_p
        found.Z3_get_error_msg.restype = c_char_p
        self._context = c_void_p(found.Z3_mk_context_rc(c_void_p(found.Z3_mk_config())))
        if not self._context:
            raise MemoryError
        found.Z3_set_error_handler(self._context, None)  # its own would end the process

    def __getattr__(self, name: str) -> Any:
        function = self._library[f"Z3_{name}"]
        function.restype, *arguments = _FUNCTIONS[name]
        function.argtypes = [c_void_p, *arguments]
        if name != "model_get_const_interp":  # which is called for each variable of each state, and can't fail
            function.errcheck = self._checked
        bound = partial(function, self._context)
        setattr(self, name, bound)
        return bound

    def _checked(self, result: Any, function: object, arguments: object) -> Any:
        if code := self._library.Z3_get_error_code(self._context):
            raise Z3Error(self._library.Z3_get_error_msg(self._context, code).decode(errors="replace"))
        return result


@cache
def library() -> Library:
    """Z3 with a context for this process."""
    return Library()


def _loaded() -> CDLL:
    """The library of the package ``z3``, the one that the modules of the package would load, without running them."""
    spec = find_spec("z3")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for path in sorted(Path(folder, "lib").glob("libz3.*"), reverse=True):  # with its version before without
            if path.suffix not in (".a", ".lib"):
                return CDLL(str(path))
    from z3 import z3core  # it knows where else to look

    return z3core.lib()  # type: ignore[no-any-return]
