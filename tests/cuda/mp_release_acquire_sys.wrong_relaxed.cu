// Message passing with .sys scope, as code does whose peer may be on another GPU or be the host.
// From: MSCCL++ FIFO trigger, microsoft/mscclpp PR 497.
// Wrong: volatile-like relaxed accesses at .sys are strong but order nothing else.
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 2
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

__device__ __forceinline__ void st_flag(unsigned *p, unsigned v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        st_flag(flag, 1);
    } else {
        while (ld_flag(flag) == 0) {
        }
        *out = *data;  // WRONG
    }
}
