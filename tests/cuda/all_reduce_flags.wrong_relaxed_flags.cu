// One-shot all-reduce: every rank publishes its buffer by a flag and waits for the flag of its peer.
// From: custom all-reduce of vLLM, TensorRT-LLM and FlashInfer (barrier at start).
// Wrong: volatile-like flags: nothing orders the buffers with them.
//
// ptxmm: kernel = "all_reduce"
// ptxmm: grid = 2
// ptxmm: args = ["buffer", "flags", "out"]
// ptxmm: [objects]
// ptxmm: buffer = { type = "u32", count = 2 }
// ptxmm: flags = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 3 /\ out[1] == 3)'
// ptxmm: races = "none"

__device__ __forceinline__ void st_flag(unsigned *p, unsigned v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Every CTA stands for a rank: it fills its buffer, tells its peer, waits for it and sums both buffers.
extern "C" __global__ void all_reduce(unsigned *buffer, unsigned *flags, unsigned *out)
{
    unsigned rank = blockIdx.x, peer = 1 - rank;
    buffer[rank] = rank + 1;
    st_flag(&flags[rank], 1);
    while (ld_flag(&flags[peer]) == 0) {
    }
    out[rank] = buffer[rank] + buffer[peer];  // WRONG
}
