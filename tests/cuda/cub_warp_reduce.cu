// Sum over a warp of four lanes with cub::WarpReduce.
// From: the documentation of cub::WarpReduce.
// Right: the shuffles need no memory.
// ptxmm: kernel = "cub_warp_reduce"
// ptxmm: block = 4
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [1, 2, 3, 4] }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 10)"
// ptxmm: races = "none"
#include <cub/warp/warp_reduce.cuh>

extern "C" __global__ void cub_warp_reduce(const unsigned *in, unsigned *out)
{
    using Reduce = cub::WarpReduce<unsigned, 4>;
    __shared__ typename Reduce::TempStorage temporary;
    unsigned sum = Reduce(temporary).Sum(in[threadIdx.x]);
    if (threadIdx.x == 0)
        *out = sum;
}
