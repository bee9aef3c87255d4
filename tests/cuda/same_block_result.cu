// All threads of a block compute the same result and all store it, as no thread is special.
// From: compilers that give one store to all lanes of a warp (Triton), and reductions that leave the result everywhere.
//
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["out"]
// ptxmm: assume = ["same-value-races"]
// ptxmm: [objects]
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 5)"
// ptxmm: races = "none"

extern "C" __global__ void block_sum(unsigned *out)
{
    __shared__ unsigned part[2];
    part[threadIdx.x / 32] = 2 + threadIdx.x / 32;
    __syncthreads();
    *out = part[0] + part[1];
}
