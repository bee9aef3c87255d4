"""The one execution of a launch: threads, their registers and memory, and what each instruction does."""
