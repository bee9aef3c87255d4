// Message passing the old way: a volatile flag and __threadfence() on either side.
// From: Rust-GPU/rust-cuda#376, the variant with fences of .cta scope between CTAs.
// Wrong: __threadfence_block() is a fence of .cta scope, the other thread is in another CTA: the fences are not
// morally strong.
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
        volatile unsigned *vflag = flag;
        *data = 42;
        __threadfence_block();
        *vflag = 1;
    } else {
        volatile unsigned *vflag = flag;
        while (*vflag == 0) {
        }
        __threadfence_block();
        *out = *data;  // WRONG
    }
}
