"""Searches by Z3: a test and a model as one problem, whose assignments are the executions."""
