// Serial reduction of two CTAs: all threads of a CTA wait together for its turn, with a barrier in each round.
// From: the semaphore of split-K GEMMs, in style: one thread polls, __syncthreads_and tells the others.
// Right: the poll is an acquire and a barrier follows; a barrier and a release hand the turn over.
// ptxmm: kernel = "semaphore_collective"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["turn", "sum"]
// ptxmm: [objects]
// ptxmm: turn = "u32"
// ptxmm: sum = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (sum[0] == 2 /\\ sum[1] == 2)"
// ptxmm: races = "none"

__device__ __forceinline__ unsigned load_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void semaphore_collective(unsigned *turn, unsigned *sum)
{
    unsigned state = 0;
    if (threadIdx.x == 0)
        state = load_acquire(turn);
    while (__syncthreads_and(threadIdx.x == 0 ? state != blockIdx.x : 1)) {
        if (threadIdx.x == 0)
            state = load_acquire(turn);
    }
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0)
        sum[warp] += 1;  // WRONG
    __syncthreads();
    if (threadIdx.x == 0)
        store_release(turn, blockIdx.x + 1);
}
