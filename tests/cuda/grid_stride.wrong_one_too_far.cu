// A grid-stride loop over an array whose length is no multiple of the grid: the last round has a guard.
// From: the loops of elementwise kernels; what is claimed is that nothing outside of the arrays is accessed.
// Wrong: it goes one element too far.
//
// ptxmm: grid = 2
// ptxmm: block = 2
// ptxmm: args = ["in", "out", 7]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 7, init = 3 }
// ptxmm: out = { type = "u32", count = 7 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[6] == 6)"
// ptxmm: races = "none"
// ptxmm: bounds = "none outside"

extern "C" __global__ void twice(const unsigned *in, unsigned *out, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= n; i += gridDim.x * blockDim.x)
        out[i] = 2 * in[i];  // WRONG
}
