// Double-checked initialisation: look at the flag, lock, look again, initialise.
// From: lazily built lookup tables and heaps of GPU allocators (cf. cuda::std::call_once in host code).
// Wrong: the fast path looks at ready with a relaxed load: a CTA that skips the lock has not acquired the table.
//
// ptxmm: kernel = "use_table"
// ptxmm: grid = 2
// ptxmm: args = ["lock", "ready", "table", "out"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: ready = "u32"
// ptxmm: table = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 42 /\ out[1] == 42)'
// ptxmm: races = "none"

__device__ __forceinline__ unsigned ld_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void st_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void use_table(unsigned *lock, unsigned *ready, unsigned *table, unsigned *out)
{
    if (*static_cast<volatile unsigned *>(ready) == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        if (ld_acquire(ready) == 0) {
            *table = 42;
            st_release(ready, 1);
        }
        st_release(lock, 0);
    }
    out[blockIdx.x] = *table;  // WRONG
}
