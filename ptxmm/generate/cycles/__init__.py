"""Tests from cycles of relaxations (Alglave, Maranget, Sarkar, Sewell: Fences in Weak Memory Models, CAV 2010)."""
