// Tiles of two threads exchange words in shared memory and add them with a shuffle.
// From: the thread block tile section of the CUDA C++ Programming Guide (cg::tiled_partition<2>).
// Right: tile.sync() orders the writes of the tile before its reads.
// ptxmm: kernel = "cg_tile_exchange"
// ptxmm: block = 4
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 3 /\\ out[1] == 3 /\\ out[2] == 7 /\\ out[3] == 7)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cg_tile_exchange(unsigned *out)
{
    __shared__ unsigned word[4];
    auto tile = cg::tiled_partition<2>(cg::this_thread_block());
    unsigned rank = threadIdx.x;
    word[rank] = rank + 1;
    tile.sync();
    unsigned other = word[rank ^ 1];
    out[rank] = tile.shfl_xor(other, 1) + other;
}
