// Producer warp and consumer warp over two stages in shared memory with full and empty mbarriers; three tiles, so that a stage is reused.
// From: CUTLASS PipelineAsync (include/cutlass/pipeline/sm90_pipeline.hpp): full/empty barriers, phase bit flipped at each wrap.
// Right: each arrive (.release.cta) synchronizes with the wait of its phase (.acquire.cta): write before read, read before next write.
// ptxmm: kernel = "mbarrier_pipeline"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [10, 11, 12] }
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11 /\\ out[2] == 12)"
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
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory");
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

constexpr unsigned kStages = 2;
constexpr unsigned kTiles = 3;

extern "C" __global__ void mbarrier_pipeline(const unsigned *in, unsigned *out)
{
    __shared__ unsigned ring[kStages];
    __shared__ uint64_t full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < kStages; ++stage) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 1);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            unsigned stage = tile % kStages, phase = tile / kStages & 1;
            barrier_wait(&empty[stage], phase ^ 1);   // the phase before the first one counts as complete
            ring[stage] = in[tile];
            barrier_arrive(&full[stage]);
        }
    } else if (threadIdx.x == 32) {
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            unsigned stage = tile % kStages, phase = tile / kStages & 1;
            barrier_wait(&full[stage], phase);
            out[tile] = ring[stage];
            barrier_arrive(&empty[stage]);
        }
    }
}
