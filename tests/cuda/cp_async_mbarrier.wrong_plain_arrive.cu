// cp.async whose completion is announced on an mbarrier: the consumer warp waits for the mbarrier, the producer does not wait at all.
// From: PTX ISA cp.async.mbarrier.arrive (example) and CUTLASS cpasync_barrier_arrive_noinc (arch/barrier.h).
// Wrong: mbarrier.arrive does not wait for the copy of its thread (PTX ISA 9.7.10.24.1): the consumer may read before it.
// ptxmm: kernel = "cp_async_mbarrier"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [7, 8, 9, 10] }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"
#include <cstdint>

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void wait_parity(unsigned barrier, unsigned parity)
{
    asm volatile("{\n\t"
                 ".reg .pred done;\n\t"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t"
                 "}"
                 : : "r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void cp_async_mbarrier(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[4];
    __shared__ alignas(8) uint64_t full;
    unsigned barrier = shared_address(&full);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barrier) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(tile)), "l"(in) : "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
    } else if (threadIdx.x == 32) {
        wait_parity(barrier, 0);
        *out = tile[0];  // WRONG
    }
}
