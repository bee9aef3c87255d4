"""Search for the executions of a test that a model allows, on each of the two sides."""
