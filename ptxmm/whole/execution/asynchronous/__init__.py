"""What is done asynchronously: copies, and products of warpgroups (PTX ISA 9.7.10.24, 9.7.16)."""
