// Message passing by read-modify-writes: atomicExch sets the flag, atomicCAS polls and takes it, with
// __threadfence().
// From: put_signal/wait_signal of PyTorch symmetric memory; the fence-less form is rust-lang/rust#136480.
// Wrong: atomicExch_block is .cta: it is not morally strong with the poll of the other CTA, so nothing is observed.
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 2
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        atomicExch_block(flag, 1);  // WRONG
    } else {
        while (atomicCAS(flag, 1, 0) != 1) {
        }
        __threadfence();
        *out = *data;
    }
}
