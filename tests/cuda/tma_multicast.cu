// Multicast TMA load: rank 0 of a cluster loads each tile into the shared memory of both CTAs; both give the single stage back to rank 0.
// From: CUTLASS SM90 mainloop with TMA multicast (consumer_release arrives on the empty barriers of the multicasting CTAs).
// Right: each CTA waits for its own full barrier; rank 0 waits for both releases and then has fence.proxy.async before the next copy.
// ptxmm: kernel = "tma_multicast"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: cluster = 2
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 8, init = [10, 10, 10, 10, 11, 11, 11, 11] }
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11 /\\ out[2] == 10 /\\ out[3] == 11)"
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

__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async;" : : : "memory"); }

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

__device__ __forceinline__ void multicast_load(void *to, const void *from, unsigned bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 : : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)), "h"((uint16_t)3)
                 : "memory");
}

__device__ __forceinline__ void arrive_remote(unsigned barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" : : "r"(barrier) : "memory");
}

constexpr unsigned kTiles = 2;

extern "C" __global__ void __cluster_dims__(2, 1, 1) tma_multicast(const unsigned *in, unsigned *out)
{
    __shared__ alignas(128) unsigned stage[4];
    __shared__ uint64_t full, empty;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_init(&empty, 2);
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            if (tile > 0)
                barrier_wait(rank == 0 ? &empty : &full, tile - 1 & 1);
            barrier_expect(&full, sizeof stage);
            if (rank == 0) {
                fence_async();
                multicast_load(stage, in + 4 * tile, sizeof stage, &full);
            }
        }
    } else if (threadIdx.x == 32) {
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            barrier_wait(&full, tile & 1);
            out[kTiles * rank + tile] = stage[0];
            arrive_remote(map_to_rank(&empty, 0));
        }
    }
    cluster_sync();
}
