// Look-back over the tile states of cub: the first tile publishes its inclusive prefix, the second waits for it.
// From: cub::ScanTileState (agent/single_pass_scan_operators.cuh), used by DeviceScan.
// Right: both poll and store of the tile state are strong, so nothing races. (That value and status come together is by the reading vector=whole only.)
// ptxmm: kernel = "cub_tile_state"
// ptxmm: grid = 2
// ptxmm: args = ["state", "data", "out"]
// ptxmm: [objects]
// ptxmm: state = { type = "u64", count = 34, init = 99 }
// ptxmm: data = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: races = "none"
#include <cub/agent/single_pass_scan_operators.cuh>

struct Plus { __device__ unsigned operator()(unsigned a, unsigned b) const { return a + b; } };

extern "C" __global__ void cub_tile_state(void *state, unsigned *data, unsigned *out)
{
    using State = cub::ScanTileState<unsigned>;
    State tiles;
    tiles.Init(2, state, 34 * 8);
    if (blockIdx.x == 0) {
        tiles.SetInclusive(0, 5);
    } else {
        State::StatusWord status;
        unsigned value;
        tiles.WaitForValid(0, status, value);
        out[0] = value;
    }
}
