// Message passing between two CTAs: one writes data and raises a flag, the other waits for it and reads.
//
// How the kernel is launched, and what must hold (TOML):
// ptxmm: kernel = "mp"
// ptxmm: grid = 2                          # CTAs
// ptxmm: block = 32                        # threads of each
// ptxmm: threads = "lane 0"                # those that run: one for each role
// ptxmm: args = ["data", "flag", "out"]    # an object for each pointer
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = { type = "u32", init = 0 }
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"  # when all threads have ended
// ptxmm: races = "none"

__device__ void set_flag(unsigned *flag)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

__device__ unsigned get_flag(const unsigned *flag)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        *data = 42;
        set_flag(flag);
    } else {
        while (get_flag(flag) == 0) {
        }
        *out = *data;
    }
}
