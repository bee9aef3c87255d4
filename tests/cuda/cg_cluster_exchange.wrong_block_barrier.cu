// Two CTAs of a cluster read each other's shared memory between two barriers of the cluster.
// From: the distributed shared memory section of the CUDA C++ Programming Guide (cg::this_cluster(), map_shared_rank).
// Right: cluster.sync() arrives with release and waits with acquire; the last one keeps the shared memory alive.
// ptxmm: kernel = "cg_cluster_exchange"
// ptxmm: grid = 2
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 2 /\\ out[1] == 1)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2) cg_cluster_exchange(unsigned *out)
{
    __shared__ unsigned word;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    word = rank + 1;
    __syncthreads();
    out[rank] = *cluster.map_shared_rank(&word, rank ^ 1);  // WRONG
    cluster.sync();
}
