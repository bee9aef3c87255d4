// Stream-K fix-up: CTAs arrive on a counter with red.release, one CTA waits for all with ld.acquire.
// From: CUTLASS GenericBarrier (barrier.h), arrive_inc and wait_eq.
// Wrong: the counter is polled with ld.volatile, which is strong but does not acquire.
//
// ptxmm: kernel = "reduce"
// ptxmm: grid = 3
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["arrived", "partial", "out"]
// ptxmm: [objects]
// ptxmm: arrived = "s32"
// ptxmm: partial = { type = "u32", count = 2 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 30)"
// ptxmm: races = "none"

__device__ __forceinline__ void arrive_inc(int *flag)
{
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
}

__device__ __forceinline__ void wait_for(const int *flag, int count)
{
    if (threadIdx.x == 0) {
        int seen;
        do {
            asm volatile("ld.volatile.global.b32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        } while (seen < count);
    }
    __syncthreads();
}

extern "C" __global__ void reduce(int *arrived, unsigned *partial, unsigned *out)
{
    if (blockIdx.x < 2) {
        if (threadIdx.x == 0)
            partial[blockIdx.x] = 10 * (blockIdx.x + 1);
        arrive_inc(arrived);
    } else {
        wait_for(arrived, 2);
        if (threadIdx.x == 0)
            *out = partial[0] + partial[1];  // WRONG
    }
}
