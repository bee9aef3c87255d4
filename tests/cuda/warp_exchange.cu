// Two lanes of a warp exchange a word through shared memory.
// From: the __syncwarp() section of the CUDA C++ Programming Guide; kokkos PR 6630 (missing __syncwarp after the write).
// Right: __syncwarp() orders the writes of all lanes before it with their reads after it.
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
    __syncwarp();
    out[lane] = word[lane ^ 1];
}
