// Message passing between two warps through shared memory: a volatile flag and __threadfence_block().
// From: kokkos PR 8648 (a block fence used as if it were __syncthreads).
// Wrong: fences without a flag: a fence is no barrier, the consumer may read before the producer writes.
//
// ptxmm: kernel = "mp"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = [42, "out"]
// ptxmm: [objects]
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

extern "C" __global__ void mp(unsigned value, unsigned *out)
{
    __shared__ unsigned data;
    __shared__ volatile unsigned flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = value;
        __threadfence_block();
    } else if (threadIdx.x == 32) {
        __threadfence_block();
        *out = data;  // WRONG
    }
}
