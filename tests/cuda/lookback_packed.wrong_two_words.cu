// Decoupled look-back with value and status packed into one 64-bit word: relaxed accesses suffice.
// From: NVIDIA/nccl#824, #1641 (the same with 16-byte lines).
// Wrong: the pair is accessed as two 32-bit elements of a vector, which are separate accesses in no order: the status
// may come without its value.
//
// ptxmm: kernel = "scan"
// ptxmm: grid = 3
// ptxmm: args = ["in", "tiles", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [1, 2, 4] }
// ptxmm: tiles = { type = "u32", count = 6 }
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 1 /\ out[1] == 3 /\ out[2] == 7)'
// ptxmm: races = "none"

enum : unsigned { INVALID, AGGREGATE, PREFIX };

__device__ __forceinline__ uint2 ld_tile(const unsigned long long *p)
{
    uint2 v;
    asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");  // WRONG
    return v;
}

__device__ __forceinline__ void st_tile(unsigned long long *p, unsigned value, unsigned status)
{
    asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(value), "r"(status) : "memory");
}

extern "C" __global__ void scan(const unsigned *in, unsigned long long *tiles, unsigned *out)
{
    int tile = blockIdx.x;
    unsigned sum = in[tile];
    if (tile > 0) {
        st_tile(&tiles[tile], sum, AGGREGATE);
        for (int before = tile - 1;; before--) {
            uint2 seen;
            do {
                seen = ld_tile(&tiles[before]);
            } while (seen.y == INVALID);
            sum += seen.x;
            if (seen.y == PREFIX)
                break;
        }
    }
    st_tile(&tiles[tile], sum, PREFIX);
    out[tile] = sum;
}
