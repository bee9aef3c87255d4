// Message passing by a relaxed flag with a fence.acq_rel.gpu on either side.
// From: JuliaGPU/AcceleratedKernels.jl PR 98 (one-sided fix).
// Wrong: no fence follows the poll: there is no acquire pattern, the load of data may be early.
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
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
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
        *out = *data;  // WRONG
    }
}
