// TMA load pipeline: in each of two CTAs a producer warp fills two stages by cp.async.bulk and a consumer warp reads them; three tiles.
// From: CUTLASS PipelineTmaAsync and DeepEP (PR 642: the fence before a stage that was read is given back to the async proxy).
// Right: the wait on `full` orders the copy before the read (its completion has an implicit proxy fence); read; fence.proxy.async;
//        arrive on `empty`; wait orders the read before the next copy.
// ptxmm: kernel = "tma_load_pipeline"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 24, init = [10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 20, 0, 0, 0, 21, 0, 0, 0, 22, 0, 0, 0] }
// ptxmm: out = { type = "u32", count = 6 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11 /\\ out[2] == 12 /\\ out[3] == 20 /\\ out[4] == 21 /\\ out[5] == 22)"
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

__device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory");
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
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void bulk_load(void *to, const void *from, unsigned bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

constexpr unsigned kStages = 2;
constexpr unsigned kTiles = 3;
constexpr unsigned kWords = 4;

extern "C" __global__ void tma_load_pipeline(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned ring[kStages][kWords];
    __shared__ uint64_t full[kStages], empty[kStages];
    unsigned first = blockIdx.x * kTiles;
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < kStages; ++stage) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 1);
        }
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            unsigned stage = tile % kStages, phase = tile / kStages & 1;
            barrier_wait(&empty[stage], phase ^ 1);
            barrier_expect(&full[stage], sizeof ring[stage]);
            bulk_load(ring[stage], in + (first + tile) * kWords, sizeof ring[stage], &full[stage]);
        }
    } else if (threadIdx.x == 32) {
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            unsigned stage = tile % kStages, phase = tile / kStages & 1;
            barrier_wait(&full[stage], phase);
            out[first + tile] = ring[stage][0];
            fence_async();
            barrier_arrive(&empty[stage]);
        }
    }
}
