"""Stronger and weaker programs: the forms of an instruction, all programs in one, the smallest sets that suffice."""
