// Ranks report to one owner, every rank in a word of its own that the owner polls.
// From: custom all-reduce of vLLM after PR 2760.
// Right: all accesses of a flag have one size and are volatile, so they are morally strong: no race. The ranks hand
// over no data here.
//
// ptxmm: kernel = "barrier"
// ptxmm: grid = 3
// ptxmm: args = ["flags", "out"]
// ptxmm: [objects]
// ptxmm: flags = { type = "u32", count = 2 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 1)"
// ptxmm: races = "none"

// CTA 0 and 1 stand for ranks that report to CTA 2.
extern "C" __global__ void barrier(volatile unsigned *flags, unsigned *out)
{
    if (blockIdx.x < 2) {
        flags[blockIdx.x] = 1;
    } else {
        while (flags[0] == 0 || flags[1] == 0) {
        }
        *out = 1;
    }
}
