// A spin lock of atomicCAS and atomicExch with __threadfence() inside both, around a plain counter.
// From: CUDA by Example as printed; Alglave et al., GPU Concurrency (ASPLOS 2015).
// Wrong: atomics are relaxed: a new holder of the lock may read the counter before the last holder has written it.
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

extern "C" __global__ void locked_add(unsigned *lock, unsigned *counter)
{
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *counter += 1;  // WRONG
    atomicExch(lock, 0);
}
