"""Events of concrete executions: threads run on plain integers, relations are sets of pairs."""
