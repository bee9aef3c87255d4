// Decoupled look-back with status and values in separate words: fences order value and status.
// From: NVIDIA/cub#591.
// Wrong: status words are accessed with ld.cg/st.cg, which are weak: they race (fence.sc on both sides keeps the sums
// right).
//
// ptxmm: kernel = "scan"
// ptxmm: grid = 3
// ptxmm: args = ["in", "status", "aggregate", "prefix", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [1, 2, 4] }
// ptxmm: status = { type = "u32", count = 3 }
// ptxmm: aggregate = { type = "u32", count = 3 }
// ptxmm: prefix = { type = "u32", count = 3 }
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 1 /\ out[1] == 3 /\ out[2] == 7)'
// ptxmm: races = "none"

enum : unsigned { INVALID, AGGREGATE, PREFIX };

__device__ __forceinline__ unsigned ld_status(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // WRONG
    return v;
}

__device__ __forceinline__ void st_status(unsigned *p, unsigned v)
{
    asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void scan(const unsigned *in, unsigned *status, unsigned *aggregate, unsigned *prefix,
                                unsigned *out)
{
    int tile = blockIdx.x;
    unsigned sum = in[tile];
    if (tile > 0) {
        aggregate[tile] = sum;
        __threadfence();
        st_status(&status[tile], AGGREGATE);
        for (int before = tile - 1;; before--) {
            unsigned seen;
            while ((seen = ld_status(&status[before])) == INVALID) {
            }
            __threadfence();
            sum += seen == PREFIX ? prefix[before] : aggregate[before];
            if (seen == PREFIX)
                break;
        }
    }
    prefix[tile] = sum;
    __threadfence();
    st_status(&status[tile], PREFIX);
    out[tile] = sum;
}
