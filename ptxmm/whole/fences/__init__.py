"""What orders a launch: is it needed, and what is missing."""
