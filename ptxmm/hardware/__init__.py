"""Litmus tests on NVIDIA GPUs: a test as CUDA, built, checked in the machine code, run, and compared with a model."""
