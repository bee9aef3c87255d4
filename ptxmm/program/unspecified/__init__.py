"""What a program leaves open: unknown values, places of objects, elected and active lanes."""
