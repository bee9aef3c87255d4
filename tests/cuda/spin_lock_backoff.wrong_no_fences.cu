// A mutex with exponential back-off: atomicCAS, __nanosleep() while it is held, and fences inside.
// From: the mutex of the CUDA C++ Programming Guide as printed.
// Wrong: compare-and-swap and exchange are relaxed: the lock excludes, but the next holder may read the old counter.
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

__device__ void mutex_lock(unsigned *mutex)
{
    unsigned pause = 8;
    while (atomicCAS(mutex, 0, 1) == 1) {
        __nanosleep(pause);
        if (pause < 256)
            pause *= 2;
    }
}

__device__ void mutex_unlock(unsigned *mutex)
{
    atomicExch(mutex, 0);
}

extern "C" __global__ void locked_add(unsigned *lock, unsigned *counter)
{
    mutex_lock(lock);
    *counter += 1;  // WRONG
    mutex_unlock(lock);
}
