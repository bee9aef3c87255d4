// Histogram whose bins are spread over the shared memory of a cluster: each thread adds to the bin of its value, wherever that is.
// From: the distributed shared memory section of the CUDA C++ Programming Guide (clusterHist_kernel).
// Wrong: the bins are read after __syncthreads() only: the atomics of the other CTA may come later.
// ptxmm: kernel = "cluster_histogram"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: cluster = 2
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "bins"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 64, init = 1 }
// ptxmm: bins = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (bins[0] == 0 /\\ bins[1] == 2)"
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const unsigned *in, unsigned *bins)
{
    __shared__ unsigned bin;      // each CTA of the cluster has one
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    if (threadIdx.x == 0)
        bin = 0;
    cluster.sync();
    unsigned value = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(cluster.map_shared_rank(&bin, value % 2), 1u);
    __syncthreads();
    if (threadIdx.x == 0)
        bins[rank] = bin;  // WRONG
}
