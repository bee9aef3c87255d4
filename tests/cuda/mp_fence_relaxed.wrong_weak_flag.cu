// Message passing by a relaxed flag with a fence.acq_rel.gpu on either side.
// From: NVIDIA/cub#591 (tile status by ld.cg/st.cg), with the lighter fence.
// Wrong: the flag is stored with st.cg and polled with ld.cg: a cache operator leaves an access weak, so there is no
// pattern and the flag races too.
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
    asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void fence()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        fence();
        st_flag(flag, 1);
    } else {
        while (ld_flag(flag) == 0) {
        }
        fence();
        *out = *data;  // WRONG
    }
}
