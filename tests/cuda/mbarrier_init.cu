// Initialisation of an mbarrier that the other CTA of the cluster arrives on: fence.mbarrier_init and a relaxed cluster barrier publish it.
// From: CUTLASS (cutlass::arch::fence_barrier_init, cluster_arrive_relaxed) and triton PR 11498 (fence emitted by another thread).
// Right: the fence is in the thread that did the init, before its arrive; every operation on the mbarrier is after the wait.
// ptxmm: kernel = "mbarrier_init"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: cluster = 2
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

__device__ __forceinline__ void fence_barrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t *barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

__device__ __forceinline__ unsigned map_to_rank(const void *p, unsigned rank)
{
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(p)), "r"(rank));
    return address;
}

__device__ __forceinline__ void arrive_remote(unsigned barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" : : "r"(barrier) : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) mbarrier_init(unsigned *in, unsigned *out)
{
    __shared__ uint64_t full;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barrier_init();
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
    if (rank == 1 && threadIdx.x == 0)
        arrive_remote(map_to_rank(&full, 0));
    if (rank == 0 && threadIdx.x == 32) {
        barrier_wait(&full, 0);
        *out = *in;
    }
    cluster_sync();
}
