// nvcc: -arch=sm_90a
// The warps of a warpgroup store a tile of A and one of B, whose products they then compute, and one of them takes the
// tile of B for something else when the product is done. Each writer makes its stores visible to the async proxy.
#include <cstdint>

// ptxmm: block = 128
// ptxmm: threads = ["cta 0 thread 0", "cta 0 thread 65"]
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "f32", count = 128 }
// ptxmm: [check]
// ptxmm: races = "none"

constexpr uint64_t DENSE = (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;

__device__ uint64_t descriptor(const void *tile)
{
    return (__cvta_generic_to_shared(tile) & 0x3FFFF) >> 4 | DENSE;
}

__global__ void multiply(float *out)
{
    __shared__ alignas(128) uint4 a[128];
    __shared__ alignas(128) uint4 b[16];
    float d0, d1, d2, d3;
    const int self = threadIdx.x;

    a[self] = make_uint4(self, self, self, self); // WRONG
    if (self < 16)
        b[self] = make_uint4(0, 0, 0, 0); // WRONG
    __syncthreads();

    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"
                 : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
                 : "l"(descriptor(a)), "l"(descriptor(b)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

    if (self == 65)
        b[0] = make_uint4(1, 1, 1, 1);
    out[self] = d0 + d1 + d2 + d3;
}
