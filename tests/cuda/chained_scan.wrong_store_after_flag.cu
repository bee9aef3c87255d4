// A chained scan: every tile waits for the prefix of the tile before it, adds its own and passes it on.
// From: StreamScan (Yan et al., PPoPP 2013); serial split-K.
// Wrong: the prefix is stored after the flag that announces it.
//
// ptxmm: kernel = "chained_scan"
// ptxmm: grid = 3
// ptxmm: args = ["in", "prefix", "ready", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [1, 2, 4] }
// ptxmm: prefix = { type = "u32", count = 3 }
// ptxmm: ready = { type = "u32", count = 3 }
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 1 /\ out[1] == 3 /\ out[2] == 7)'
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

extern "C" __global__ void chained_scan(const unsigned *in, unsigned *prefix, unsigned *ready, unsigned *out)
{
    unsigned tile = blockIdx.x, sum = in[tile];
    if (tile > 0) {
        while (ld_acquire(&ready[tile - 1]) == 0) {
        }
        sum += prefix[tile - 1];  // WRONG
    }
    st_release(&ready[tile], 1);
    prefix[tile] = sum;
    out[tile] = sum;
}
