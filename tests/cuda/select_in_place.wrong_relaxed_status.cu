// In-place compaction: a tile may overwrite input of an earlier tile once that tile has published its status.
// From: CUB DeviceSelect before NVIDIA/cccl PR 1782.
// Wrong: the status is relaxed on both sides: the load may still be under way when its input is overwritten (load
// buffering).
//
// ptxmm: kernel = "compact"
// ptxmm: grid = 2
// ptxmm: args = ["values", "status", "out"]
// ptxmm: [objects]
// ptxmm: values = { type = "u32", count = 2, init = [5, 7] }
// ptxmm: status = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 5)"
// ptxmm: races = "none"

__device__ __forceinline__ void st_status(unsigned *p, unsigned v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned ld_status(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Tile 0 drops its value, tile 1 keeps its own and moves it down to the place of value 0.
extern "C" __global__ void compact(unsigned *values, unsigned *status, unsigned *out)
{
    if (blockIdx.x == 0) {
        unsigned value = values[0];  // WRONG
        st_status(status, 1);
        *out = value;
    } else {
        unsigned value = values[1];
        while (ld_status(status) == 0) {
        }
        values[0] = value;
    }
}
