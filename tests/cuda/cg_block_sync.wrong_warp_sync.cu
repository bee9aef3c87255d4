// Threads of a block exchange words in shared memory across this_thread_block().sync().
// From: the thread block section of the CUDA C++ Programming Guide (cooperative groups).
// Right: block.sync() is the barrier of the CTA.
// ptxmm: kernel = "cg_block_sync"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 64 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 33 /\\ out[32] == 1)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cg_block_sync(unsigned *out)
{
    __shared__ unsigned word[64];
    cg::thread_block block = cg::this_thread_block();
    unsigned rank = block.thread_rank();
    word[rank] = rank + 1;
    cg::tiled_partition<32>(block).sync();
    out[rank] = word[rank ^ 32];  // WRONG
}
