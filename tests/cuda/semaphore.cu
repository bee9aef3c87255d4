// Serial split-K: a semaphore passes the tile from CTA to CTA; thread 0 polls with ld.acquire and signals with
// st.release.
// From: CUTLASS Semaphore (semaphore.h); NVIDIA/cutlass#2775 asks why it needs no __threadfence().
// Right: bar.sync orders the stores of all warps before the release of thread 0 (release is cumulative), and the
// acquire before all warps of the next CTA.
//
// ptxmm: kernel = "fixup"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["lock", "tile"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: tile = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (tile[0] == 3 /\ tile[1] == 3)'
// ptxmm: races = "none"

__device__ __forceinline__ void semaphore_wait(const unsigned *lock, unsigned turn)
{
    if (threadIdx.x == 0) {
        unsigned state;
        do {
            asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(state) : "l"(lock) : "memory");
        } while (state != turn);
    }
    __syncthreads();
}

__device__ __forceinline__ void semaphore_release(unsigned *lock, unsigned turn)
{
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(lock), "r"(turn) : "memory");
}

// Split-K: the CTAs add their part to the tile one after the other.
extern "C" __global__ void fixup(unsigned *lock, unsigned *tile)
{
    semaphore_wait(lock, blockIdx.x);
    if (threadIdx.x % 32 == 0)
        tile[threadIdx.x / 32] += blockIdx.x + 1;
    semaphore_release(lock, blockIdx.x + 1);
}
