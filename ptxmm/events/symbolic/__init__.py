"""Events of all executions at once: each with the formula under which it happens."""
