// Message passing by read-modify-writes: atomicExch sets the flag, atomicCAS polls and takes it, with
// __threadfence().
// From: rust-lang/rust#136480 (acquire-release atomics lowered to relaxed ones).
// Wrong: an atomic is relaxed: it orders no other access.
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
        atomicExch(flag, 1);
    } else {
        while (atomicCAS(flag, 1, 0) != 1) {
        }
        *out = *data;  // WRONG
    }
}
