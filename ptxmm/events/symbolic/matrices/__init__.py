"""Instructions on matrices: ldmatrix, stmatrix, wmma, wgmma, tcgen05."""
