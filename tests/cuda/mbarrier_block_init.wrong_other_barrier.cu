// Initialisation of an mbarrier that the other threads of the block use: __syncthreads between it and the first arrival or wait.
// From: the example of mbarrier.init in the PTX ISA, 9.7.14.15.9.
// Wrong: the thread that initialises waits at another barrier than the one that uses the mbarrier.
// ptxmm: kernel = "mbarrier_block_init"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", init = 7 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"
#include <cstdint>

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(uint64_t *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t *barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    } while (!done);
}

extern "C" __global__ void mbarrier_block_init(unsigned *in, unsigned *out)
{
    __shared__ uint64_t full;
    __shared__ unsigned value;
    if (threadIdx.x == 0)
        barrier_init(&full, 1);
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 32;" : : : "memory");
    else
        asm volatile("bar.sync 2, 32;" : : : "memory");
    if (threadIdx.x == 0) {
        value = *in;
        barrier_arrive(&full);
    }
    if (threadIdx.x == 32) {
        barrier_wait(&full, 0);  // WRONG
        *out = value;
    }
}
