"""Text and JSON of result values. Nothing is decided here."""
