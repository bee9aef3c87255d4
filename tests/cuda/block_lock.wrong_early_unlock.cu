// A block takes a lock: its first thread tries, and tells the others by shared memory whether it has it, until it has.
// From: Triton, what tl.atomic_cas in a loop is compiled to (locks of split-K and of layer norm gradients).
// Wrong: the first thread gives the lock back before the others have written their sums.
//
// ptxmm: kernel = "block_lock"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["lock", "sums"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: sums = { type = "u32", count = 64 }
// ptxmm: [check]
// ptxmm: condition = 'forall (sums[0] == 2 /\ sums[32] == 2)'
// ptxmm: races = "none"

__device__ __forceinline__ unsigned try_lock(unsigned *lock)
{
    unsigned seen;
    asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(seen) : "l"(lock) : "memory");
    return seen;
}

__device__ __forceinline__ unsigned unlock(unsigned *lock)
{
    unsigned seen;
    asm volatile("atom.acq_rel.gpu.global.exch.b32 %0, [%1], 0;" : "=r"(seen) : "l"(lock) : "memory");
    return seen;
}

extern "C" __global__ void block_lock(unsigned *lock, unsigned *sums)
{
    __shared__ unsigned told;
    unsigned seen;
    do {
        __syncthreads();
        if (threadIdx.x == 0) {
            told = try_lock(lock);
        }
        __syncthreads();
        seen = told;
    } while (seen == 1);
    sums[threadIdx.x] += 1;  // WRONG
    if (threadIdx.x == 0) {
        unlock(lock);
    }
}
