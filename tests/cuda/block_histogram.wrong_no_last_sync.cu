// Rounds over a shared counter: counted with atomicAdd by all warps, read by all, then cleared for the next round.
// From: flashinfer PR 3529 and llama.cpp PR 13438 (a barrier was missing between the reads of one round and the clearing for the next).
// Wrong: no barrier between the reads of a round and the clearing for the next one: a warp may read 0.
// ptxmm: kernel = "block_histogram"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 2 /\\ out[1] == 2 /\\ out[2] == 2 /\\ out[3] == 2)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void block_histogram(unsigned *out)
{
    __shared__ unsigned count;
    cg::thread_block block = cg::this_thread_block();
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    for (int round = 0; round < 2; ++round) {
        if (threadIdx.x == 0)
            count = 0;
        block.sync();
        if (leader)
            atomicAdd(&count, 1u);
        block.sync();
        if (leader)
            out[2 * round + warp] = count;  // WRONG
    }
}
