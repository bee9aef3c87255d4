// Two producers count themselves in with red.release; one consumer acquires the counter.
// From: arrival counters of stream-K and distributed GEMM kernels (CUTLASS GenericBarrier, red.release).
// Right: a chain of reductions is observed as a whole: the acquire that reads 2 synchronizes with both release
// operations.
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 3
// ptxmm: args = ["data", "arrived", "out"]
// ptxmm: [objects]
// ptxmm: data = { type = "u32", count = 2 }
// ptxmm: arrived = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 30)"
// ptxmm: races = "none"

__device__ __forceinline__ void red_add(unsigned *p, unsigned v)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void mp(unsigned *data, unsigned *arrived, unsigned *out)
{
    if (blockIdx.x < 2) {
        data[blockIdx.x] = 10 * (blockIdx.x + 1);
        red_add(arrived, 1);
    } else {
        while (ld_acquire(arrived) != 2) {
        }
        *out = data[0] + data[1];
    }
}
