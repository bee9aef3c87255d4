"""The rows of the instruction table by family; ``ptxmm.ptx.table`` puts them together."""
