"""The rows of the instruction table by family, each with what makes its operation, which checks the operands and fills
in every default, and with the rule between its qualifiers; ``ptxmm.ptx.table`` puts them together."""
