"""What both sides take from a program beyond its text.

What stands here decides verdicts and no disagreement of the engines can show a fault in it: the reference of the
tests states it once more without it (docs/engines.md).
"""
