"""Whole launches: a kernel with all its threads, executed once.

One execution is enough where who synchronizes with whom is the same in every execution (docs/whole.md). The layers,
each of which knows those before it only: ``order`` (what is ordered before what, and which pairs of accesses nothing
orders), ``execution`` (what the threads do), ``narrowing`` (what of it other executions need not have), ``explain``
(what almost orders two accesses, what warps did when), ``deciding`` and ``analysis`` (the answer), ``fences`` (the
answers about changed launches).
"""
