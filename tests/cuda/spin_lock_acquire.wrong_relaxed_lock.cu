// A spin lock in inline PTX: atom.acquire.cas to lock, st.release to unlock.
// From: locks of NVSHMEM and of hash tables since sm_70.
// Wrong: a relaxed compare-and-swap acquires nothing.
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

__device__ __forceinline__ unsigned lock_cas(unsigned *p)
{
    unsigned old;
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(p) : "memory");
    return old;
}

__device__ __forceinline__ void unlock(unsigned *p)
{
    asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(p) : "memory");
}

extern "C" __global__ void locked_add(unsigned *lock, unsigned *counter)
{
    while (lock_cas(lock) != 0) {
    }
    *counter += 1;  // WRONG
    unlock(lock);
}
