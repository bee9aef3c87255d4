// A grid barrier of sense reversal: one word whose top bit flips when all CTAs have arrived; only thread 0 fences.
// From: grid synchronization of cooperative groups; rapidsai/cuml#4157 doubts the fences of one thread.
// Wrong: no fence precedes the arrival: nothing is released with it.
//
// ptxmm: kernel = "exchange"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["arrived", "data", "out"]
// ptxmm: [objects]
// ptxmm: arrived = "u32"
// ptxmm: data = { type = "u32", count = 4 }
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = '~exists (out[0] != 13 \/ out[1] != 12 \/ out[2] != 11 \/ out[3] != 10)'
// ptxmm: races = "none"

__device__ __forceinline__ void grid_sync(unsigned *arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        volatile unsigned *poll = arrived;
        unsigned old = atomicAdd(arrived, mine);
        while (((old ^ *poll) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void exchange(unsigned *arrived, unsigned *data, unsigned *out)
{
    unsigned warp = blockIdx.x * 2 + threadIdx.x / 32;
    if (threadIdx.x % 32 == 0)
        data[warp] = 10 + warp;
    grid_sync(arrived);
    if (threadIdx.x % 32 == 0)
        out[warp] = data[3 - warp];  // WRONG
}
