// Three CTAs add to a row, one after the other: each waits for its turn, the last one sets the counter back for the next launch.
// From: the locks of stream-K GEMMs for quantized weights, in style: a fence and a relaxed reduction pass the turn on.
// Wrong: nothing releases the sums: who has the next turn need not see them.
// ptxmm: kernel = "turns_reset"
// ptxmm: grid = 3
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["turn", "row"]
// ptxmm: [objects]
// ptxmm: turn = "s32"
// ptxmm: row = { type = "u32", count = 64 }
// ptxmm: [check]
// ptxmm: condition = "forall (row[0] == 6 /\\ row[32] == 6)"
// ptxmm: races = "none"

static __device__ void take(const int *turn, int mine)
{
    if (threadIdx.x == 0) {
        int seen;
        do
            asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
        while (seen != mine);
    }
    __syncthreads();
}

static __device__ void pass(int *turn, bool last)
{
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    if (last) {
        *turn = 0;
        return;
    }
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(turn) : "memory");  // WRONG
}

extern "C" __global__ void turns_reset(int *turn, unsigned *row)
{
    int mine = gridDim.x - 1 - blockIdx.x;
    take(turn, mine);
    row[threadIdx.x] += blockIdx.x + 1;
    pass(turn, blockIdx.x == 0);
}
