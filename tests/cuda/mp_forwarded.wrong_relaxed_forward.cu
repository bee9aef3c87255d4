// Message passing through a third CTA that only forwards the signal.
// From: ring and tree all-reduce, chained scans; the litmus shape is ISA2.
// Wrong: the middle CTA polls with relaxed loads: its release does not cover what it has not acquired.
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 3
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = { type = "u32", count = 2 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

__device__ __forceinline__ void st_flag(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        st_flag(&flag[0], 1);
    } else if (blockIdx.x == 1) {
        while (*static_cast<volatile unsigned *>(&flag[0]) == 0) {
        }
        st_flag(&flag[1], 1);
    } else {
        while (ld_flag(&flag[1]) == 0) {
        }
        *out = *data;  // WRONG
    }
}
