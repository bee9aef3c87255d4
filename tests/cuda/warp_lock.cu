// The lanes of a warp change a record of two words one after the other: each takes a lock, and all go round until every
// lane of the warp is done, so that none waits for one that does not run.
// From: desul and Kokkos, atomic operations on objects of any size; hash tables of GPUs have the same loops.
// Right: fences between the relaxed operations on the lock and the record acquire and release; who is done votes so, and
// does nothing but vote until all are.
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
            __threadfence();
            record[0] += 1;
            record[1] += 2;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    } while (__ballot_sync(here, done) != here);
}
