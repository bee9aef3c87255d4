// Message passing between two warps of one CTA by a flag of .cta scope.
// From: producer/consumer warps that share a flag without a barrier.
// Right: both threads are in one CTA, so release and acquire at .cta are morally strong and synchronize.
//
// ptxmm: kernel = "mp"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
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
    asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (threadIdx.x == 0) {
        *data = 42;
        st_flag(flag, 1);
    } else if (threadIdx.x == 32) {
        while (ld_flag(flag) == 0) {
        }
        *out = *data;
    }
}
