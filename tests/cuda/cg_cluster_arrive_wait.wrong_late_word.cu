// Split barrier of a cluster: arrive after the own word is written, wait before the other's is read.
// From: the cluster group section of the CUDA C++ Programming Guide (cluster.barrier_arrive(), barrier_wait()).
// Right: barrier_arrive() releases, barrier_wait() acquires; the last barrier keeps the shared memory alive.
// ptxmm: kernel = "cg_cluster_arrive_wait"
// ptxmm: grid = 2
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 2 /\\ out[1] == 1)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2) cg_cluster_arrive_wait(unsigned *out)
{
    __shared__ unsigned word;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    auto token = cluster.barrier_arrive();
    word = rank + 1;  // WRONG
    unsigned *remote = cluster.map_shared_rank(&word, rank ^ 1);
    cluster.barrier_wait(std::move(token));
    out[rank] = *remote;
    cluster.sync();
}
