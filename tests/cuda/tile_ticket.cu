// A dynamic tile scheduler: thread 0 draws a ticket, shares it through shared memory between two barriers.
// From: persistent kernels with atomic tile counters; FlashInfer PR 3529 is the fault of the missing second barrier.
// Right: the first barrier orders the store before all loads, the second the loads before the store of the next
// round.
//
// ptxmm: kernel = "ordered"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["ticket", "out"]
// ptxmm: [objects]
// ptxmm: ticket = "u32"
// ptxmm: out = { type = "u32", count = 4, init = 9 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 0 /\ out[1] == 1 /\ out[2] == 0 /\ out[3] == 1)'
// ptxmm: races = "none"

// Thread 0 draws a tile for the CTA and hands its number to all warps, for each of two tiles.
extern "C" __global__ void ordered(unsigned *ticket, unsigned *out)
{
    __shared__ unsigned tile;
    unsigned *record = out + 4 * blockIdx.x + 2 * (threadIdx.x / 32);
    for (int round = 0; round < 2; round++) {
        if (threadIdx.x == 0)
            tile = atomicAdd(ticket, 1);
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            record[round] = tile;
        __syncthreads();
    }
}
