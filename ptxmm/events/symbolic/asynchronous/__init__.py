"""Asynchronous copies, stores and reductions, and tensor maps."""
