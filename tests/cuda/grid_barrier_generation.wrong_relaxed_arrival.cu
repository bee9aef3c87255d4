// A grid barrier used twice: an arrival counter that the last CTA resets, and a generation that the others poll.
// From: MSCCL++ DeviceSyncer before microsoft/mscclpp PR 499.
// Wrong: arrivals are relaxed: the last CTA does not see what the others wrote, nor can it hand that on.
//
// ptxmm: kernel = "exchange"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["count", "generation", "data", "out"]
// ptxmm: [objects]
// ptxmm: count = "u32"
// ptxmm: generation = "u32"
// ptxmm: data = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = '~exists (out[0] != 12 \/ out[1] != 11)'
// ptxmm: races = "none"

__device__ __forceinline__ unsigned ld_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void st_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned add_acq_rel(unsigned *p, unsigned v)
{
    unsigned old;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}

__device__ __forceinline__ void grid_sync(unsigned *count, unsigned *generation)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned now = ld_acquire(generation);
        if (add_acq_rel(count, 1) == gridDim.x - 1) {
            *count = 0;
            st_release(generation, now + 1);
        } else {
            while (ld_acquire(generation) == now) {
            }
        }
    }
    __syncthreads();
}

extern "C" __global__ void exchange(unsigned *count, unsigned *generation, unsigned *data, unsigned *out)
{
    if (threadIdx.x == 0)
        data[blockIdx.x] = 11 + blockIdx.x;
    grid_sync(count, generation);
    unsigned other = 0;
    if (threadIdx.x == 0)
        other = data[1 - blockIdx.x];  // WRONG
    grid_sync(count, generation);
    if (threadIdx.x == 0) {
        data[blockIdx.x] = 0;
        out[blockIdx.x] = other;
    }
}
