// Ranks report to one owner, every rank in a word of its own that the owner polls.
// From: custom all-reduce of vLLM before PR 2760.
// Wrong: the ranks store bytes and the owner polls both at once: the accesses overlap partly, a mixed-size race,
// about which the model says nothing.
//
// ptxmm: kernel = "barrier"
// ptxmm: grid = 3
// ptxmm: args = ["flags", "out"]
// ptxmm: [objects]
// ptxmm: flags = { type = "u8", count = 2 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 1)"
// ptxmm: races = "none"

// CTA 0 and 1 stand for ranks that report to CTA 2.
extern "C" __global__ void barrier(volatile unsigned char *flags, unsigned *out)
{
    if (blockIdx.x < 2) {
        flags[blockIdx.x] = 1;
    } else {
        while (*reinterpret_cast<volatile unsigned short *>(flags) != 0x0101) {  // WRONG
        }
        *out = 1;
    }
}
