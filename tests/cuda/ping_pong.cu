// Two consumer warps take turns with a shared resource (the tensor cores, here a plain accumulator): ordered by two named barriers.
// From: the ping-pong schedule of CUTLASS (OrderedSequenceBarrier) and FlashAttention-3 (warp_scheduler_barrier_sync/arrive).
// Right: each turn begins with bar.sync on the own barrier, which the other warp arrived at after its turn; the first turn is given away.
// ptxmm: kernel = "ping_pong"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["accumulator"]
// ptxmm: [objects]
// ptxmm: accumulator = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (accumulator == 1212)"
// ptxmm: races = "none"

constexpr int kTurns = 2;

__device__ __forceinline__ void turn_wait(int warp)
{
    asm volatile("bar.sync %0, 64;" : : "r"(1 + warp) : "memory");
}

__device__ __forceinline__ void turn_pass(int warp)
{
    asm volatile("bar.arrive %0, 64;" : : "r"(1 + warp) : "memory");
}

extern "C" __global__ void ping_pong(unsigned *accumulator)
{
    int warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    if (warp == 1)
        turn_pass(0);
    for (int turn = 0; turn < kTurns; ++turn) {
        turn_wait(warp);
        if (leader)
            *accumulator = *accumulator * 10 + 1 + warp;
        if (warp == 0 || turn + 1 < kTurns)
            turn_pass(warp ^ 1);
    }
}
