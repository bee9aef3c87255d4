// Single-producer single-consumer ring of two slots between two CTAs; three items, so that the last one reuses the first slot.
// From: the head/tail queues of NCCL (src/device/prims_simple.h, step counters) and mscclpp's FIFO (PR 499: release/acquire counters).
// Wrong: the consumer polls tail with ld.relaxed: no acquire pattern, so the slot may still hold what it held before.
// ptxmm: kernel = "spsc_ring"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["ring", "head", "tail", "out"]
// ptxmm: [objects]
// ptxmm: ring = { type = "u32", count = 2 }
// ptxmm: head = "u32"
// ptxmm: tail = "u32"
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11 /\\ out[2] == 12)"
// ptxmm: races = "none"

__device__ __forceinline__ unsigned load_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ unsigned load_relaxed(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

constexpr unsigned kSlots = 2;
constexpr unsigned kItems = 3;

extern "C" __global__ void spsc_ring(unsigned *ring, unsigned *head, unsigned *tail, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < kItems; ++i) {
            if (i >= kSlots)
                while (load_acquire(head) + kSlots <= i) { }   // full
            ring[i % kSlots] = 10 + i;
            store_release(tail, i + 1);
        }
    } else {
        for (unsigned i = 0; i < kItems; ++i) {
            while (load_relaxed(tail) <= i) { }                // empty
            out[i] = ring[i % kSlots];  // WRONG
            store_release(head, i + 1);
        }
    }
}
