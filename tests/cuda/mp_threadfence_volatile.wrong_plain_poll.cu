// Message passing the old way: a volatile flag and __threadfence() on either side.
// From: the CUDA samples and NCCL before sm_70; __threadfence() is membar.gl, a fence.sc.gpu.
// Wrong: the flag is polled through a plain pointer: nvcc loads it once, and the load is weak: it races with the
// store of the flag (fence.sc on both sides still keeps stale data out). The PTX gives the hoisted load no line, so
// the store is marked.
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
        __threadfence();
        *vflag = 1;  // WRONG
    } else {
        while (*flag == 0) {
        }
        __threadfence();
        *out = *data;
    }
}
