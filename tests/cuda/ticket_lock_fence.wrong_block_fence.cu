// A ticket lock with a volatile turn and __threadfence() on both sides of the critical section.
// From: the fa_lock of Stuart and Owens, Efficient Synchronization Primitives for GPUs (arXiv:1110.4623).
// Wrong: __threadfence_block() is .cta: no synchronization with the holder in another CTA.
//
// ptxmm: kernel = "locked_add"
// ptxmm: grid = 2
// ptxmm: args = ["next", "serving", "counter"]
// ptxmm: [objects]
// ptxmm: next = "u32"
// ptxmm: serving = "u32"
// ptxmm: counter = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (counter == 2)"
// ptxmm: races = "none"

extern "C" __global__ void locked_add(unsigned *next, volatile unsigned *serving, unsigned *counter)
{
    unsigned ticket = atomicAdd(next, 1);
    while (*serving != ticket) {
    }
    __threadfence_block();
    *counter += 1;  // WRONG
    __threadfence_block();
    *serving = ticket + 1;
}
