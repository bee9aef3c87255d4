// The same ring in the style before scoped instructions: volatile counters and __threadfence().
// From: CUDA samples and NCCL's device code before sm_70 (volatile head/tail, __threadfence before the counter is posted).
// Right: __threadfence() is fence.sc.gpu; fence; volatile store and volatile load; fence are release and acquire patterns.
// ptxmm: kernel = "spsc_ring_fence"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["ring", "head", "tail", "out"]
// ptxmm: [objects]
// ptxmm: ring = { type = "u32", count = 1 }
// ptxmm: head = "u32"
// ptxmm: tail = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11)"
// ptxmm: races = "none"

constexpr unsigned kItems = 2;

extern "C" __global__ void spsc_ring_fence(unsigned *ring, volatile unsigned *head, volatile unsigned *tail, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < kItems; ++i) {
            if (i > 0) {
                while (*head != i) { }
                __threadfence();
            }
            ring[0] = 10 + i;
            __threadfence();
            *tail = i + 1;
        }
    } else {
        for (unsigned i = 0; i < kItems; ++i) {
            while (*tail != i + 1) { }
            __threadfence();
            out[i] = ring[0];
            __threadfence();
            *head = i + 1;
        }
    }
}
