// Decoupled look-back with value and status packed into one 64-bit word: relaxed accesses suffice.
// From: CUB ScanTileState for values of up to 8 bytes.
// Right: value and status are one scalar access, so a status always comes with its own value; no other memory is
// handed over.
//
// ptxmm: kernel = "scan"
// ptxmm: grid = 3
// ptxmm: args = ["in", "tiles", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [1, 2, 4] }
// ptxmm: tiles = { type = "u64", count = 3 }
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 1 /\ out[1] == 3 /\ out[2] == 7)'
// ptxmm: races = "none"

enum : unsigned { INVALID, AGGREGATE, PREFIX };

__device__ __forceinline__ uint2 ld_tile(const unsigned long long *p)
{
    unsigned long long v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return make_uint2(static_cast<unsigned>(v), static_cast<unsigned>(v >> 32));
}

__device__ __forceinline__ void st_tile(unsigned long long *p, unsigned value, unsigned status)
{
    unsigned long long v = static_cast<unsigned long long>(status) << 32 | value;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
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
