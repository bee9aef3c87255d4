// A whole CTA hands data to another: __syncthreads, then one thread fences and sets the flag; the mirror image on the
// other side.
// From: grid barriers and split-K fix-up; rapidsai/cuml#4157 doubted that the fence of one thread is enough.
// Wrong: no barrier precedes the signal: the store of warp 1 may still be to come.
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = { type = "u32", count = 2 }
// ptxmm: flag = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = '~exists (out[0] != 7 \/ out[1] != 8)'
// ptxmm: races = "none"

__device__ __forceinline__ void fence()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

extern "C" __global__ void mp(unsigned *data, volatile unsigned *flag, unsigned *out)
{
    unsigned warp = threadIdx.x / 32;
    if (blockIdx.x == 0) {
        if (threadIdx.x % 32 == 0)
            data[warp] = 7 + warp;
        if (threadIdx.x == 0) {
            fence();
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {
            }
            fence();
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            out[warp] = data[warp];  // WRONG
    }
}
