// A ticket lock: atomicAdd takes a ticket, the holder is polled with ld.acquire and passed on with st.release.
// From: fair locks and ordered epilogues of persistent kernels.
// Wrong: the poll of serving is relaxed: the holder of the next ticket may read the old counter.
//
// ptxmm: kernel = "locked_add"
// ptxmm: grid = 3
// ptxmm: args = ["next", "serving", "counter"]
// ptxmm: [objects]
// ptxmm: next = "u32"
// ptxmm: serving = "u32"
// ptxmm: counter = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (counter == 3)"
// ptxmm: races = "none"

__device__ __forceinline__ unsigned ld_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void st_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void locked_add(unsigned *next, unsigned *serving, unsigned *counter)
{
    unsigned ticket = atomicAdd(next, 1);
    while (ld_acquire(serving) != ticket) {
    }
    *counter += 1;  // WRONG
    st_release(serving, ticket + 1);
}
