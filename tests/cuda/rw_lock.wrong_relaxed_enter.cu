// A reader-writer lock with a slot for each reader: a reader takes its own slot, a writer takes them all.
// From: big-reader locks, as for GPU maps that are read much more often than written.
// Wrong: the compare-and-swap is relaxed: who enters does not see what the last holder wrote.
//
// ptxmm: kernel = "table"
// ptxmm: grid = 3
// ptxmm: args = ["slot", "pair", "out"]
// ptxmm: [objects]
// ptxmm: slot = { type = "u32", count = 2 }
// ptxmm: pair = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == out[1] /\ out[2] == out[3])'
// ptxmm: races = "none"

__device__ __forceinline__ unsigned try_enter(unsigned *slot)
{
    unsigned old;
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(slot) : "memory");
    return old;
}

__device__ __forceinline__ void leave(unsigned *slot)
{
    asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(slot) : "memory");
}

// CTA 0 writes; every other CTA reads under a slot of its own.
extern "C" __global__ void table(unsigned *slot, unsigned *pair, unsigned *out)
{
    if (blockIdx.x == 0) {
        for (int reader = 0; reader < 2; reader++)
            while (try_enter(&slot[reader]) != 0) {
            }
        pair[0] = 1;
        pair[1] = 1;
        leave(&slot[0]);
        leave(&slot[1]);
    } else {
        unsigned reader = blockIdx.x - 1;
        while (try_enter(&slot[reader]) != 0) {
        }
        unsigned first = pair[0], second = pair[1];  // WRONG
        leave(&slot[reader]);
        out[2 * reader] = first;
        out[2 * reader + 1] = second;
    }
}
