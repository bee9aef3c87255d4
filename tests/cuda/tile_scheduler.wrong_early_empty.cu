// Dynamic tile scheduler of a persistent kernel: one warp takes the next tile from a global counter and hands it to the other one in shared memory.
// From: DynamicPersistentTileScheduler of FlashAttention-3 (hopper/tile_scheduler.hpp): atomicAdd, shared word, two named barriers.
// Wrong: the word is read after it was given back: it may already hold the next ticket: the warp leaves
//        too early, the tile is not done, and the scheduler waits for ever.
// ptxmm: kernel = "tile_scheduler"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["counter", "work", 1]
// ptxmm: [objects]
// ptxmm: counter = "u32"
// ptxmm: work = { type = "u32", count = 1 }
// ptxmm: [check]
// ptxmm: condition = "forall (work[0] == 1)"
// ptxmm: races = "none"
// ptxmm: unroll = 2

enum : int { kFull = 1, kEmpty = 2 };

__device__ __forceinline__ void barrier_sync(int id)
{
    asm volatile("bar.sync %0, 64;" : : "r"(id) : "memory");
}

__device__ __forceinline__ void barrier_arrive(int id)
{
    asm volatile("bar.arrive %0, 64;" : : "r"(id) : "memory");
}

extern "C" __global__ void tile_scheduler(unsigned *counter, unsigned *work, unsigned tiles)
{
    __shared__ unsigned next;
    bool leader = threadIdx.x % 32 == 0;
    if (threadIdx.x < 32) {
        unsigned tile;
        do {
            tile = 0;
            if (leader)
                next = tile = atomicAdd(counter, 1u);
            tile = __shfl_sync(~0u, tile, 0);
            barrier_arrive(kFull);
            barrier_sync(kEmpty);
        } while (tile < tiles);
    } else {
        for (;;) {
            barrier_sync(kFull);
            barrier_arrive(kEmpty);
            unsigned tile = next;  // WRONG
            if (tile >= tiles)
                break;
            if (leader)
                work[tile] += 1;
        }
    }
}
