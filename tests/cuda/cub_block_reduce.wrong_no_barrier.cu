// Sum over a block of two warps with cub::BlockReduce, twice with the same temporary storage.
// From: the documentation of cub::BlockReduce (BLOCK_REDUCE_WARP_REDUCTIONS).
// Right: a barrier stands between two uses of the temporary storage.
// ptxmm: kernel = "cub_block_reduce"
// ptxmm: block = 64
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 64 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: races = "none"
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void cub_block_reduce(const unsigned *in, unsigned *out)
{
    using Reduce = cub::BlockReduce<unsigned, 64>;
    __shared__ typename Reduce::TempStorage temporary;
    unsigned value = in[threadIdx.x];
    unsigned first = Reduce(temporary).Sum(value);
    unsigned second = Reduce(temporary).Sum(value + 1);  // WRONG
    if (threadIdx.x == 0) {
        out[0] = first;
        out[1] = second;
    }
}
