// The kernel writes a result into pinned memory and sets a flag that the host polls with acquire loads.
// From: MSCCL++ FIFO trigger, microsoft/mscclpp PR 497.
// Wrong: the flag is a relaxed store of .sys scope: data may arrive after it.
//
// ptxmm: kernel = "produce"
// ptxmm: args = ["data", "done"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: done = "u32"
// ptxmm: [host]
// ptxmm: H0 = """
// ptxmm: WAIT:
// ptxmm:   ld.acquire.sys.u32 r0, [done];
// ptxmm:   setp.eq.u32 p, r0, 0;
// ptxmm:   @p bra WAIT;
// ptxmm:   ld.u32 r1, [data];
// ptxmm: """
// ptxmm: [check]
// ptxmm: condition = "forall (H0:r1 == 42)"
// ptxmm: races = "none"

__device__ __forceinline__ void st_release_sys(unsigned *p, unsigned v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// data and done are pinned host memory.
extern "C" __global__ void produce(unsigned *data, unsigned *done)
{
    *data = 42;  // WRONG
    st_release_sys(done, 1);
}
