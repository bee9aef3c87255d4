// The kernel signals the host by __threadfence_system() and a volatile flag.
// From: NVIDIA/nccl#2322.
// Wrong: __threadfence() is a fence of .gpu scope: it is not morally strong with anything of the host.
//
// ptxmm: kernel = "produce"
// ptxmm: args = ["data", "done"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: done = "u32"
// ptxmm: [host]
// ptxmm: H0 = """
// ptxmm: WAIT:
// ptxmm:   ld.acquire.sys.u32 r0, [done];
// ptxmm:   setp.eq.u32 p, r0, 0;
// ptxmm:   @p bra WAIT;
// ptxmm:   ld.u32 r1, [data];
// ptxmm: """
// ptxmm: [check]
// ptxmm: condition = "forall (H0:r1 == 42)"
// ptxmm: races = "none"

// data and done are pinned host memory.
extern "C" __global__ void produce(unsigned *data, volatile unsigned *done)
{
    *data = 42;  // WRONG
    __threadfence();
    *done = 1;
}
