"""What loads, stores, atomics and multimem operations access."""
