// Each CTA of a cluster counts into the shared memory of the other one with red.async; the mbarrier there says when both words are counted.
// From: PTX ISA red.async (distributed histograms and remote counters on sm_90).
// Right: the phase completes after the 4 bytes of the reduction; complete_tx is .release.cluster, the wait acquires it.
// ptxmm: kernel = "red_async"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: cluster = 2
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [3, 4] }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 104 /\\ out[1] == 103)"
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

__device__ __forceinline__ void add_async(unsigned address, unsigned v, unsigned barrier)
{
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                 : : "r"(address), "r"(v), "r"(barrier) : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) red_async(const unsigned *in, unsigned *out)
{
    __shared__ unsigned sum;
    __shared__ uint64_t full;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        sum = 100;
        barrier_init(&full, 1);
        barrier_expect(&full, sizeof sum);
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x == 0)
        add_async(map_to_rank(&sum, rank ^ 1), in[rank], map_to_rank(&full, rank ^ 1));
    barrier_wait(&full, 0);
    if (threadIdx.x == 0)
        out[rank] = sum;
    cluster_sync();
}
