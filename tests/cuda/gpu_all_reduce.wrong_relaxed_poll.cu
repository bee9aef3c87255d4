// One-shot all-reduce over two GPUs: every rank has its own buffer and flag, and the pointers of its peer.
// From: custom all-reduce of vLLM, TensorRT-LLM and FlashInfer; push all-reduce of NCCL and mscclpp.
// Wrong: a relaxed load is no acquire pattern: the flag may be seen before what was stored ahead of it.
//
// ptxmm: kernel = "all_reduce"
// ptxmm: [[grids]]
// ptxmm: gpu = 0
// ptxmm: args = ["buffer0", "buffer1", "flag0", "flag1", "out0", 0]
// ptxmm: [[grids]]
// ptxmm: gpu = 1
// ptxmm: args = ["buffer1", "buffer0", "flag1", "flag0", "out1", 1]
// ptxmm: [objects]
// ptxmm: buffer0 = "u32"
// ptxmm: buffer1 = "u32"
// ptxmm: flag0 = "u32"
// ptxmm: flag1 = "u32"
// ptxmm: out0 = "u32"
// ptxmm: out1 = "u32"
// ptxmm: [check]
// ptxmm: condition = 'forall (out0 == 3 /\ out1 == 3)'
// ptxmm: races = "none"

__device__ __forceinline__ void st_flag(unsigned *p, unsigned v)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_flag(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Each GPU fills its buffer, sets its flag, waits for that of its peer and sums both buffers.
extern "C" __global__ void all_reduce(unsigned *buffer, const unsigned *peer, unsigned *flag, const unsigned *other,
                                      unsigned *out, unsigned rank)
{
    *buffer = rank + 1;
    st_flag(flag, 1);
    while (ld_flag(other) == 0) {
    }
    *out = *buffer + *peer;  // WRONG
}
