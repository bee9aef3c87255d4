// Tree reduction of four words by lanes of one warp through shared memory.
// From: the "warp-synchronous" last steps of the reduction sample, as repaired for sm_70 and later (numba PR 6127, kaldi PR 3211).
// Right: __syncwarp() between each read and the next write and between each write and the next read.
// ptxmm: kernel = "warp_reduction"
// ptxmm: grid = 1
// ptxmm: block = 32
// ptxmm: threads = "lane 0-3"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [1, 2, 4, 8] }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 15)"
// ptxmm: races = "none"

extern "C" __global__ void warp_reduction(const unsigned *in, unsigned *out)
{
    __shared__ volatile unsigned sum[4];
    unsigned lane = threadIdx.x;
    if (lane >= 4)
        return;
    unsigned mine = in[lane];
    sum[lane] = mine;
    __syncwarp(0xf);
    for (unsigned step = 2; step > 0; step /= 2) {
        if (lane < step)
            mine += sum[lane + step];
        __syncwarp(0xf);
        if (lane < step)
            sum[lane] = mine;
        __syncwarp(0xf);
    }
    if (lane == 0)
        *out = sum[0];
}
