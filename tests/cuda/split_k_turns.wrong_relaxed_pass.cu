// Three CTAs take their turns: each waits for its number, adds to the sums and says who is next.
// From: the semaphore of split-K GEMMs, in style: a small class, whose first round has nothing polled yet.
// Wrong: a relaxed store makes no release pattern: the next CTA need not see the sums.
// ptxmm: kernel = "split_k_turns"
// ptxmm: grid = 3
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["turn", "sum"]
// ptxmm: [objects]
// ptxmm: turn = "s32"
// ptxmm: sum = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (sum[0] == 3 /\\ sum[1] == 3)"
// ptxmm: races = "none"
// ptxmm: barriers = "convergent"

struct Turn {
    int *place;
    bool polls;
    int seen;

    __device__ Turn(int *where) : place(where), polls(threadIdx.x == 0), seen(-1) {}

    __device__ void wait(int number)
    {
        while (__syncthreads_and(seen != number)) {
            if (polls)
                asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(place) : "memory");
        }
        __syncthreads();
    }

    __device__ void pass(int next)
    {
        __syncthreads();
        if (polls)
            asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(place), "r"(next) : "memory");  // WRONG
    }
};

extern "C" __global__ void split_k_turns(int *turn, unsigned *sum)
{
    Turn mine(turn);
    mine.wait(blockIdx.x);
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0)
        sum[warp] += 1;  // WRONG
    mine.pass(blockIdx.x + 1);
}
