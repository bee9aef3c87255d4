// Producer and consumer warp hand one shared buffer back and forth with two named barriers: bar.sync waits, bar.arrive does not.
// From: PTX ISA 9.7.14.1 (producer/consumer example), CUTLASS arch::NamedBarrier, FlashAttention-3 named barriers.
// Wrong: the consumer arrives at `empty` before it reads the buffer: the second write races with the first read, which may return 11.
// ptxmm: kernel = "named_barrier"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [10, 11] }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11)"
// ptxmm: races = "none"

enum : int { kFull = 1, kEmpty = 2 };

__device__ __forceinline__ void barrier_sync(int id)
{
    asm volatile("bar.sync %0, 64;" : : "r"(id) : "memory");
}

__device__ __forceinline__ void barrier_arrive(int id)
{
    asm volatile("bar.arrive %0, 64;" : : "r"(id) : "memory");
}

extern "C" __global__ void named_barrier(const unsigned *in, unsigned *out)
{
    __shared__ unsigned buffer[32];
    unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int i = 0; i < 2; ++i) {
            if (i > 0)
                barrier_sync(kEmpty);
            buffer[lane] = in[i];
            barrier_arrive(kFull);
        }
    } else {
        for (int i = 0; i < 2; ++i) {
            barrier_sync(kFull);
            if (i == 0)
                barrier_arrive(kEmpty);
            unsigned value = buffer[lane];  // WRONG
            if (lane == 0)
                out[i] = value;
        }
    }
}
