// Search by a whole block: every warp looks at its part, __syncthreads_or() tells all of them whether anyone found the key.
// From: search and graph kernels (Gunrock, Lonestar) that first used a shared flag for this, cleared and set in each round.
// Right: the barrier returns the reduction of its own phase, there is no shared word to clear.
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
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    for (int round = 0; round < 2; ++round) {
        bool found = leader && in[2 * round + warp] == key;
        int any = __syncthreads_or(found);
        if (leader)
            out[2 * round + warp] = any;
    }
}
