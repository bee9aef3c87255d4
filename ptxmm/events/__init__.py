"""The events of a test: ``explicit``, one concrete execution at a time; ``symbolic``, all executions as formulas.

The two share no code, so that each can be held against the other.
"""
