"""What ``import ptxmm`` offers beyond the analyses: tests that can be asked, results that show themselves.

Nothing is decided here, and nothing here is used by the rest of the package.
"""
