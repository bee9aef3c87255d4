// Warp-aggregated counter: the lanes that are active together take their numbers with one atomic of their first lane.
// From: the coalesced group section of the CUDA C++ Programming Guide (cg::coalesced_threads()).
// Right: whoever is active together, every lane gets a number of its own.
// ptxmm: kernel = "cg_coalesced_counter"
// ptxmm: block = 3
// ptxmm: args = ["counter", "out"]
// ptxmm: [objects]
// ptxmm: counter = "u32"
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = "forall (counter == 2 /\\ ~(out[0] == out[2]))"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cg_coalesced_counter(unsigned *counter, unsigned *out)
{
    if (threadIdx.x == 1)
        return;
    cg::coalesced_group active = cg::coalesced_threads();
    unsigned first = 0;
    if (active.thread_rank() == 0)
        first = atomicAdd(counter, 1);  // WRONG
    out[threadIdx.x] = active.shfl(first, 0) + active.thread_rank();
}
