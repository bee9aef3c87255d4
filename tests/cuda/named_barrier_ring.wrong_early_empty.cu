// Ring of two stages in shared memory, each with a full and an empty named barrier; three tiles, so that the first stage is used twice.
// From: warp-specialized kernels before mbarriers (CUDA-DMA, https://github.com/lightsighter/CudaDMA; Singe; FlashAttention-3).
// Wrong: the consumer arrives at `empty` before it reads the stage: the third tile races with the read of the first.
// ptxmm: kernel = "named_barrier_ring"
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

constexpr int kStages = 2;
constexpr int kTiles = 3;

__device__ __forceinline__ int full(int stage) { return 1 + stage; }
__device__ __forceinline__ int empty(int stage) { return 1 + kStages + stage; }

__device__ __forceinline__ void barrier_sync(int id)
{
    asm volatile("barrier.sync %0, 64;" : : "r"(id) : "memory");
}

__device__ __forceinline__ void barrier_arrive(int id)
{
    asm volatile("barrier.arrive %0, 64;" : : "r"(id) : "memory");
}

extern "C" __global__ void named_barrier_ring(const unsigned *in, unsigned *out)
{
    __shared__ unsigned ring[kStages][32];
    unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int tile = 0; tile < kTiles; ++tile) {
            int stage = tile % kStages;
            if (tile >= kStages)
                barrier_sync(empty(stage));
            ring[stage][lane] = in[tile];
            barrier_arrive(full(stage));
        }
    } else {
        for (int tile = 0; tile < kTiles; ++tile) {
            int stage = tile % kStages;
            barrier_sync(full(stage));
            if (tile + kStages < kTiles)
                barrier_arrive(empty(stage));
            unsigned value = ring[stage][lane];  // WRONG
            if (lane == 0)
                out[tile] = value;
        }
    }
}
