// A flag that says that something has changed: whoever changes something sets it, all to the same value.
// From: relaxation sweeps of graph kernels (breadth-first search, connected components): `*again = 1`.
// Wrong: each says which one it was, so that the values differ.
//
// ptxmm: grid = 3
// ptxmm: args = ["level", "again"]
// ptxmm: [objects]
// ptxmm: level = { type = "u32", count = 3, init = [9, 9, 2] }
// ptxmm: again = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (again > 0)"
// ptxmm: races = "none"

extern "C" __global__ void sweep(unsigned *level, unsigned *again)
{
    if (level[blockIdx.x] > 4) {
        level[blockIdx.x] = 4;
        // ptxmm: allow(race: same-value, "whoever changes something says so")
        *again = blockIdx.x + 1;  // WRONG
    }
}
