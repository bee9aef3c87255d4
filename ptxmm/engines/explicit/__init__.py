"""Searches over concrete executions, and the confirmation of every execution that is shown."""
