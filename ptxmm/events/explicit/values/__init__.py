"""What registers hold, and what instructions compute."""
