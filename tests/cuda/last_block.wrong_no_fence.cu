// Reduction in one launch: the CTA that counts in last adds up the partial results of all.
// From: threadFenceReduction of the CUDA samples and the example of __threadfence() in the CUDA C++ Programming
// Guide, with a second fence.
// Wrong: without fences the count may be seen before the partial sum.
//
// ptxmm: kernel = "reduce"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "partial", "count", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [3, 4] }
// ptxmm: partial = { type = "u32", count = 2 }
// ptxmm: count = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"

extern "C" __global__ void reduce(const unsigned *in, unsigned *partial, unsigned *count, unsigned *out)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = in[blockIdx.x];
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        unsigned sum = 0;
#pragma unroll 1
        for (unsigned block = 0; block < gridDim.x; block++)
            sum += partial[block];  // WRONG
        *out = sum;
    }
}
