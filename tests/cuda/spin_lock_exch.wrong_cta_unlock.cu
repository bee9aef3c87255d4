// A test-and-test-and-set lock: poll relaxed, then try an acquiring exchange; unlock by a releasing exchange.
// From: spin locks of GPU memory allocators.
// Wrong: the unlocking exchange has .cta scope: it is not morally strong with the exchange of the other CTA.
//
// ptxmm: kernel = "locked_add"
// ptxmm: grid = 2
// ptxmm: args = ["lock", "counter"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: counter = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (counter == 2)"
// ptxmm: races = "none"
// ptxmm: unroll = 2

__device__ __forceinline__ void lock_tatas(unsigned *p)
{
    unsigned old;
    do {
        do {
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(p) : "memory");
        } while (old != 0);
        asm volatile("atom.acquire.gpu.global.exch.b32 %0, [%1], 1;" : "=r"(old) : "l"(p) : "memory");
    } while (old != 0);
}

__device__ __forceinline__ unsigned unlock(unsigned *p)
{
    unsigned old;
    asm volatile("atom.release.cta.global.exch.b32 %0, [%1], 0;" : "=r"(old) : "l"(p) : "memory");
    return old;
}

extern "C" __global__ void locked_add(unsigned *lock, unsigned *counter)
{
    lock_tatas(lock);
    *counter += 1;  // WRONG
    unlock(lock);
}
