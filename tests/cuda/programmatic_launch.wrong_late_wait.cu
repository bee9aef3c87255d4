// A kernel lets the next one begin early; that one prepares itself and then waits for what it needs.
// From: programmatic dependent launch (CUDA C++ Programming Guide 4.5; GEMM epilogues of CUTLASS, FlashInfer norms).
// Wrong: the array is read before griddepcontrol.wait.
//
// ptxmm: [[grids]]
// ptxmm: kernel = "first"
// ptxmm: grid = 2
// ptxmm: args = ["x"]
// ptxmm: [[grids]]
// ptxmm: kernel = "second"
// ptxmm: after = "programmatic"
// ptxmm: args = ["x", "weight", "y"]
// ptxmm: [objects]
// ptxmm: x = { type = "u32", count = 2 }
// ptxmm: weight = { type = "u32", init = 3 }
// ptxmm: y = "u32"
// ptxmm: [check]
// ptxmm: condition = 'forall (y == 9)'
// ptxmm: races = "none"

__device__ __forceinline__ void launch_dependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

extern "C" __global__ void first(unsigned *x)
{
    launch_dependents();
    x[blockIdx.x] = blockIdx.x + 1;
}

extern "C" __global__ void second(const unsigned *x, const unsigned *weight, unsigned *y)
{
    unsigned w = *weight;  // of no kernel before this one
    unsigned sum = x[0] + x[1];  // WRONG
    wait();
    *y = w * sum;
}
