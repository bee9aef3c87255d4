// Reduction in one pass: all threads of the block that is done last learn so from a barrier that votes.
// From: the inter-block reductions of Kokkos (atomicInc, __syncthreads_or).
// Right: the fence orders the partial sum before the count, and the one behind the vote the count before the partial sums of others.
// ptxmm: kernel = "last_block_collective"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["sums", "count", "in", "result"]
// ptxmm: [objects]
// ptxmm: sums = { type = "u32", count = 2 }
// ptxmm: count = "u32"
// ptxmm: in = { type = "u32", count = 128, init = 1 }
// ptxmm: result = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (result == 4 /\\ count == 0)"
// ptxmm: races = "none"

extern "C" __global__ void last_block_collective(volatile unsigned *sums, unsigned *count, const unsigned *in, unsigned *result)
{
    __shared__ unsigned part[2];
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = in[64 * blockIdx.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0] + part[1];
    __threadfence();
    bool last = threadIdx.x == 0 && atomicInc(count, gridDim.x - 1) + 1 == gridDim.x;
    if (__syncthreads_or(last) && threadIdx.x == 0) {
        __threadfence();
        *result = sums[0] + sums[1];
    }
}
