// Decoupled look-back with status and values in separate words: fences order value and status.
// From: JuliaGPU/AcceleratedKernels.jl PR 98 (one-sided fix).
// Wrong: the tile that looks back has no fence between status and value.
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
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void st_status(unsigned *p, unsigned v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
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
            sum += seen == PREFIX ? prefix[before] : aggregate[before];  // WRONG
            if (seen == PREFIX)
                break;
        }
    }
    prefix[tile] = sum;
    __threadfence();
    st_status(&status[tile], PREFIX);
    out[tile] = sum;
}
