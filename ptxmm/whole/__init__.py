"""Whole launches: a kernel with all its threads, executed once.

One execution is enough where who synchronizes with whom is the same in every execution (docs/whole.md). The layers,
each of which knows those before it only: ``memory`` (where bytes are), ``values`` (arithmetic of all threads at once),
``clocks`` (what is ordered before what), ``trace``, ``exchanges`` (what lanes give each other), ``machine`` (the
execution), ``conflicts`` (pairs of accesses that nothing orders),
``history``, ``nearly`` (what almost orders them), ``timeline`` (what warps did when), ``analysis`` (the answer),
``variants``, ``repairs`` and ``fences`` (the answers about changed launches).
"""
