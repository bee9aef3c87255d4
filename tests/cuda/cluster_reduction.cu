// Reduction over a cluster through distributed shared memory: each CTA puts its partial sum into its own shared memory, rank 0 reads all.
// From: the thread block cluster section of the CUDA C++ Programming Guide (cooperative groups, map_shared_rank).
// Right: cluster.sync() is barrier.cluster.arrive (release) and wait (acquire): the partial sums are written before they are read, and
//        no CTA leaves while its shared memory is read.
// ptxmm: kernel = "cluster_reduction"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: cluster = 2
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [3, 4] }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_reduction(const unsigned *in, unsigned *out)
{
    __shared__ unsigned partial;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    if (threadIdx.x == 0)
        partial = in[rank];
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0) {
        unsigned sum = 0;
        for (unsigned peer = 0; peer < 2; ++peer)
            sum += *cluster.map_shared_rank(&partial, peer);
        *out = sum;
    }
    cluster.sync();
}
