// Search by a whole block: every warp looks at its part, __syncthreads_or() tells all of them whether anyone found the key.
// From: search and graph kernels (Gunrock, Lonestar) that first used a shared flag for this, cleared and set in each round.
// Wrong: a shared flag instead, with one barrier a round: it is cleared while the other warp sets it or still reads it.
// ptxmm: kernel = "block_vote"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", 5, "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [0, 5, 0, 0] }
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 1 /\\ out[1] == 1 /\\ out[2] == 0 /\\ out[3] == 0)"
// ptxmm: races = "none"

extern "C" __global__ void block_vote(const unsigned *in, unsigned key, unsigned *out)
{
    __shared__ unsigned flag;
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    for (int round = 0; round < 2; ++round) {
        bool found = leader && in[2 * round + warp] == key;
        if (threadIdx.x == 0)
            flag = 0;
        if (found)
            flag = 1;
        __syncthreads();
        unsigned any = flag;  // WRONG
        if (leader)
            out[2 * round + warp] = any;
    }
}
