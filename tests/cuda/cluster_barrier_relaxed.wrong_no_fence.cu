// Cluster barrier with relaxed arrives: the CTA arrives early, works on its own, and waits later; a fence before the arrive releases.
// From: PTX ISA 9.7.14.3 (barrier.cluster.arrive.relaxed with an explicit fence), CUTLASS cute::cluster_arrive_relaxed.
// Wrong: no fence before the relaxed arrive: it releases nothing (PTX ISA 9.7.14.3).
// ptxmm: kernel = "cluster_barrier_relaxed"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: cluster = 2
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [3, 4] }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 4 /\\ out[1] == 3)"
// ptxmm: races = "none"
#include <cstdint>

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
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

__device__ __forceinline__ unsigned load_cluster(unsigned address)
{
    unsigned v;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
    return v;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_barrier_relaxed(const unsigned *in, unsigned *out)
{
    __shared__ unsigned mine;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0)
        mine = in[rank];
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");
    unsigned theirs = map_to_rank(&mine, rank ^ 1);
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
    if (threadIdx.x == 0)
        out[rank] = load_cluster(theirs);  // WRONG
    cluster_sync();
}
