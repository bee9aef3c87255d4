"""Where threads wait for each other: barriers of CTAs and clusters, lanes of a warp, mbarriers (PTX ISA 9.7.14)."""
