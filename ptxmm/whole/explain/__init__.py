"""An execution in words and as a picture: what almost orders two accesses, and what warps did when."""
