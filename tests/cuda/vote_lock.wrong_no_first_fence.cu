// A lock that the lanes of a warp take one after the other: each tries until all that came here together are done.
// Wrong: what was written in the lock before may not be seen.
// From: locks of atomics of structures in libraries for performance portability.
//
// ptxmm: kernel = "vote_lock"
// ptxmm: grid = 2
// ptxmm: args = ["lock", "x"]
// ptxmm: [objects]
// ptxmm: lock = "s32"
// ptxmm: x = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (x[0] == 2 /\\ x[1] == 6)"
// ptxmm: races = "none"

extern "C" __global__ void vote_lock(int *lock, unsigned *x)
{
    bool done = false;
    unsigned here = __activemask();
    do {
        if (!done && atomicCAS(lock, 0, 1) == 0) {
            x[0] += 1;  // WRONG
            x[1] += 3;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    } while (__ballot_sync(here, done) != here);
}
