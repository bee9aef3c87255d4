// Two CTAs of a cooperative launch exchange a value through global memory.
// From: the grid synchronization section of the CUDA C++ Programming Guide (cooperative groups, this_grid().sync()).
// Wrong: the barrier of a CTA waits for no other CTA.
// ptxmm: kernel = "exchange"
// ptxmm: grid = 2
// ptxmm: args = ["x", "out"]
// ptxmm: [objects]
// ptxmm: x = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 2 /\\ out[1] == 1)"
// ptxmm: races = "none"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void exchange(unsigned *x, unsigned *out)
{
    unsigned rank = blockIdx.x;
    x[rank] = rank + 1;
    cg::this_thread_block().sync();
    out[rank] = x[1 - rank];  // WRONG
}
