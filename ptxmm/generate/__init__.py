"""Small programs of a vocabulary, each once up to renaming: as skeletons, as tests, as one propositional problem."""
