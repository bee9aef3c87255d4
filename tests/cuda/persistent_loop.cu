// Persistent CTAs: one thread takes the next tile, a shared word tells it to the other warp.
// From: persistent-thread kernels (Aila and Laine 2009 and many since): atomicAdd, shared word, two __syncthreads() a round.
// Right: the first barrier orders the write of the word before its reads, the second one the reads before the next write.
// ptxmm: kernel = "persistent_loop"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["counter", "work", 1]
// ptxmm: [objects]
// ptxmm: counter = "u32"
// ptxmm: work = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (work[0] == 1 /\\ work[1] == 1)"
// ptxmm: races = "none"
// ptxmm: unroll = 2

extern "C" __global__ void persistent_loop(unsigned *counter, unsigned *work, unsigned tiles)
{
    __shared__ unsigned next;
    unsigned warp = threadIdx.x / 32;
    for (;;) {
        if (threadIdx.x == 0)
            next = atomicAdd(counter, 1u);
        __syncthreads();
        unsigned tile = next;
        __syncthreads();
        if (tile >= tiles)
            break;
        if (threadIdx.x % 32 == 0)
            work[2 * tile + warp] += 1;
    }
}
