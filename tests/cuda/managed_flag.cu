// A kernel on one GPU tells a kernel on another by a flag that is managed memory.
// From: __managed__ variables (CUDA C++ Programming Guide 24.2.3); flags of multi-GPU samples.
// Right: a managed variable is one for all GPUs, and the flag is released and acquired at .sys scope.
//
// ptxmm: [[grids]]
// ptxmm: kernel = "send"
// ptxmm: gpu = 0
// ptxmm: [[grids]]
// ptxmm: kernel = "receive"
// ptxmm: gpu = 1
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = 'forall (out == 42)'
// ptxmm: races = "none"

__managed__ unsigned data = 7, flag;

extern "C" __global__ void send()
{
    data = 42;
    asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(&flag) : "memory");
}

extern "C" __global__ void receive(unsigned *out)
{
    unsigned seen;
    do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(&flag) : "memory");
    } while (seen == 0);
    *out = data;
}
