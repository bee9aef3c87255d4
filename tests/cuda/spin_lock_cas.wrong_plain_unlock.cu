// A spin lock of atomicCAS and atomicExch with __threadfence() inside both, around a plain counter.
// From: kokkos commit 8dc2ecc8c (random pool, locks_(i) = 0).
// Wrong: the lock is released by a plain store: it races with the compare-and-swap of the other CTA (fence.sc on both
// sides keeps the counter right).
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
    __threadfence();
    *counter += 1;
    __threadfence();
    *lock = 0;  // WRONG
}
