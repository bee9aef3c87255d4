// Bulk copy from the shared memory of one CTA into that of its neighbour (ring exchange of a tile in a cluster).
// From: PTX ISA cp.async.bulk shared::cta -> shared::cluster; ring attention and cluster all-gather kernels.
// Right: fence.proxy.async between the writes of the tile and its copy; the wait on the neighbour's mbarrier before the read.
// ptxmm: kernel = "dsmem_bulk_copy"
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

__device__ __forceinline__ void barrier_init(uint64_t *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void fence_barrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

__device__ __forceinline__ void barrier_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 : : "r"(shared_address(barrier)), "r"(bytes) : "memory");
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

__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

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

__device__ __forceinline__ void bulk_send(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(to), "r"(shared_address(from)), "r"(bytes), "r"(barrier) : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) dsmem_bulk_copy(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned mine[4], theirs[4];
    __shared__ uint64_t full;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof theirs);
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x < 4)
        mine[threadIdx.x] = in[rank];
    fence_async();
    __syncwarp();
    if (threadIdx.x == 0)
        bulk_send(map_to_rank(theirs, rank ^ 1), mine, sizeof mine, map_to_rank(&full, rank ^ 1));
    barrier_wait(&full, 0);
    if (threadIdx.x == 0)
        out[rank] = theirs[0];
    cluster_sync();
}
