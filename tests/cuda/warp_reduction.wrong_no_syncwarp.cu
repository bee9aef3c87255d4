// Tree reduction of four words by lanes of one warp through shared memory.
// From: the "warp-synchronous" last steps of the reduction sample, as repaired for sm_70 and later (numba PR 6127, kaldi PR 3211).
// Wrong: volatile alone, as it was written for GPUs whose lanes ran in step: the sum of the other lane may not be there yet.
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
    for (unsigned step = 2; step > 0; step /= 2) {
        if (lane < step)
            mine += sum[lane + step];  // WRONG
        if (lane < step)
            sum[lane] = mine;
    }
    if (lane == 0)
        *out = sum[0];
}
