// A dynamic tile scheduler: thread 0 draws a ticket, shares it through shared memory between two barriers.
// From: FlashInfer PR 3529 (missing barrier between rounds).
// Wrong: without the second barrier thread 0 may overwrite the tile that another warp still has to read.
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
            record[round] = tile;  // WRONG
    }
}
