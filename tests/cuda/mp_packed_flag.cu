// Message passing with data and flag in one 64-bit word: no fence is needed.
// From: the LL protocol of NCCL and the packed tile descriptors of CUB.
// Right: data and flag are one scalar: the strong read returns one of the two values of the word, never a mixture
// (single-copy atomicity).
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 2
// ptxmm: args = ["packet", "out"]
// ptxmm: [objects]
// ptxmm: packet = "u64"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

__device__ __forceinline__ void st_packet(unsigned long long *p, unsigned long long v)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ unsigned long long ld_packet(const unsigned long long *p)
{
    unsigned long long v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void mp(unsigned long long *packet, unsigned *out)
{
    if (blockIdx.x == 0) {
        st_packet(packet, 1ull << 32 | 42);
    } else {
        unsigned long long got;
        do {
            got = ld_packet(packet);
        } while (got >> 32 == 0);
        *out = static_cast<unsigned>(got);
    }
}
