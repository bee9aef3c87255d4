"""The base sets and relations of the model language (docs/cat.md)."""
