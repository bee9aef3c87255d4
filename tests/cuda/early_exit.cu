// Threads without work must not leave before a barrier that the others of the block come to.
// From: reductions whose block is larger than the input.
//
// ptxmm: block = 4
// ptxmm: args = ["in", "out", 3]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = 5 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 15)"
// ptxmm: races = "none"
// ptxmm: barriers = "convergent"

extern "C" __global__ void sum(const unsigned *in, unsigned *out, unsigned n)
{
    __shared__ unsigned part[4];
    unsigned t = threadIdx.x;
    part[t] = t < n ? in[t] : 0;
    __syncthreads();
    if (t == 0)
        *out = part[0] + part[1] + part[2] + part[3];
}
