// A spin lock of atomicCAS and atomicExch with __threadfence() inside both, around a plain counter.
// From: Sanders and Kandrot, CUDA by Example, Lock; the fences are the correction of Alglave et al. (ASPLOS 2015).
// Right: the unlocking exchange follows a fence.sc.gpu and the locking compare-and-swap that reads it precedes one:
// they synchronize.
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
    atomicExch(lock, 0);
}
