// Message passing of packed halves between two CTAs: the payload is computed in half precision, the flag is an integer.
// From: activation exchange of tensor-parallel kernels (FlashInfer, TensorRT-LLM): half2 payload, release flag, acquire poll.
// Wrong: a relaxed load of the flag acquires nothing, so that the payload may be read before it is there.
// ptxmm: kernel = "half_handoff"
// ptxmm: grid = 2
// ptxmm: args = ["payload", "flag", "out", "done"]
// ptxmm: [objects]
// ptxmm: payload = "b32"
// ptxmm: flag = "u32"
// ptxmm: out = "b32"
// ptxmm: done = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (done == 1)"
// ptxmm: races = "none"
#include <cuda_fp16.h>

__device__ __forceinline__ void st_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_relaxed(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void half_handoff(__half2 *payload, unsigned *flag, __half2 *out, unsigned *done)
{
    if (blockIdx.x == 0) {
        *payload = __hfma2(*payload, *payload, h2exp(*payload));
        st_release(flag, 1);
    } else {
        while (ld_relaxed(flag) == 0) {
        }
        *out = __hadd2(*payload, *payload);  // WRONG
        *done = 1;
    }
}
