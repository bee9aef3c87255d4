"""Real PTX: a module and what is said of its launch, as tests. See ``module.parse``."""
