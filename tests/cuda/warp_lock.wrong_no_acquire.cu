// The lanes of a warp change a record of two words one after the other: each takes a lock, and all go round until every
// lane of the warp is done, so that none waits for one that does not run.
// From: desul and Kokkos, atomic operations on objects of any size; hash tables of GPUs have the same loops.
// Wrong: nothing acquires behind the lock: a lane may not see what the one before it has stored.
//
// ptxmm: kernel = "warp_lock"
// ptxmm: block = 2
// ptxmm: args = ["lock", "record"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: record = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (record[0] == 2 /\ record[1] == 4 /\ lock == 0)'
// ptxmm: races = "none"

extern "C" __global__ void warp_lock(unsigned *lock, unsigned *record)
{
    const unsigned here = __activemask();
    bool done = false;
    do {
        if (!done && atomicCAS(lock, 0, 1) == 0) {
            record[0] += 1;  // WRONG
            record[1] += 2;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    } while (__ballot_sync(here, done) != here);
}
