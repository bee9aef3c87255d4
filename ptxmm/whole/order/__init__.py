"""What is ordered before what: clocks, what strong accesses synchronize, and pairs of accesses that nothing orders."""
