// A mutex with exponential back-off: atomicCAS, __nanosleep() while it is held, and fences inside.
// From: the mutex of the section on __nanosleep() in the CUDA C++ Programming Guide, with the fences it does not
// show.
// Right: __nanosleep() orders nothing; the fence.sc.gpu before the unlocking exchange and behind the successful
// compare-and-swap synchronize.
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
    __threadfence();
}

__device__ void mutex_unlock(unsigned *mutex)
{
    __threadfence();
    atomicExch(mutex, 0);
}

extern "C" __global__ void locked_add(unsigned *lock, unsigned *counter)
{
    mutex_lock(lock);
    *counter += 1;
    mutex_unlock(lock);
}
