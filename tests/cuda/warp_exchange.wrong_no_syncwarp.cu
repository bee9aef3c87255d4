// Two lanes of a warp exchange a word through shared memory.
// From: the __syncwarp() section of the CUDA C++ Programming Guide; kokkos PR 6630 (missing __syncwarp after the write).
// Wrong: lanes of a warp need not run in step since sm_70: without __syncwarp() the word may not be there yet.
// ptxmm: kernel = "warp_exchange"
// ptxmm: grid = 1
// ptxmm: block = 2
// ptxmm: threads = "lane 0-1"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 32, init = [3, 4] }
// ptxmm: out = { type = "u32", count = 32 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 4 /\\ out[1] == 3)"
// ptxmm: races = "none"

extern "C" __global__ void warp_exchange(const unsigned *in, unsigned *out)
{
    __shared__ unsigned word[32];
    unsigned lane = threadIdx.x;
    word[lane] = in[lane];
    out[lane] = word[lane ^ 1];  // WRONG
}
