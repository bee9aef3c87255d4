// A ticket lock with a volatile turn and __threadfence() on both sides of the critical section.
// From: the fa_lock of Stuart and Owens, Efficient Synchronization Primitives for GPUs (arXiv:1110.4623).
// Right: volatile accesses are strong: fence; volatile store is a release pattern, volatile load; fence an acquire
// pattern of .gpu scope.
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
    __threadfence();
    *counter += 1;
    __threadfence();
    *serving = ticket + 1;
}
