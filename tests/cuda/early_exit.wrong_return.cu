// Threads without work must not leave before a barrier that the others of the block come to.
// From: reductions whose block is larger than the input.
// Wrong: the last thread returns, and its warp comes apart at the barrier.
//
// ptxmm: block = 4
// ptxmm: args = ["in", "out", 3]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = 5 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: barriers = "convergent"

extern "C" __global__ void sum(const unsigned *in, unsigned *out, unsigned n)
{
    __shared__ unsigned part[4];
    unsigned t = threadIdx.x;
    if (t >= n)
        return;
    part[t] = in[t];
    __syncthreads();  // WRONG
    if (t == 0)
        *out = part[0] + part[1] + part[2];
}
