// Two GPUs add up each other's array: their CTAs meet by words that one sets when it finds them clear, and the other
// one clears when it finds them set.
// From: signal pads of PyTorch's symmetric memory, the barriers of all GPUs of FLUX and Triton-distributed.
// Wrong: an array is cleared while the other GPU still reads it.
// ptxmm: threads = "warp 0 lane 0-1"
// ptxmm: kernel = "signal_pads"
// ptxmm: block = 64
// ptxmm: [[grids]]
// ptxmm: gpu = 0
// ptxmm: args = ["pads", "parts", "out0", 0]
// ptxmm: [[grids]]
// ptxmm: gpu = 1
// ptxmm: args = ["pads", "parts", "out1", 1]
// ptxmm: [objects]
// ptxmm: pads = { type = "u64", count = 2, init = ["pad0", "pad1"] }
// ptxmm: parts = { type = "u64", count = 2, init = ["part0", "part1"] }
// ptxmm: pad0 = { type = "u32", count = 2 }
// ptxmm: pad1 = { type = "u32", count = 2 }
// ptxmm: part0 = { type = "u32", count = 64 }
// ptxmm: part1 = { type = "u32", count = 64 }
// ptxmm: out0 = { type = "u32", count = 64 }
// ptxmm: out1 = { type = "u32", count = 64 }
// ptxmm: [check]
// ptxmm: races = "none"

#include <cuda/atomic>

using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

__device__ void turn(unsigned *at, unsigned from, unsigned to, cuda::std::memory_order order)
{
    unsigned found = from;
    while (!Word(*at).compare_exchange_strong(found, to, order, cuda::std::memory_order_relaxed))
        found = from;
}

__device__ void meet(unsigned **pads, unsigned rank)
{
    if (threadIdx.x < 2) {
        turn(pads[threadIdx.x] + rank, 0, 1, cuda::std::memory_order_release);
        turn(pads[rank] + threadIdx.x, 1, 0, cuda::std::memory_order_acquire);
    }
}

extern "C" __global__ void signal_pads(unsigned **pads, unsigned **parts, unsigned *out, unsigned rank)
{
    parts[rank][threadIdx.x] = threadIdx.x + rank;
    __syncthreads();
    meet(pads, rank);
    __syncthreads();
    out[threadIdx.x] = parts[0][threadIdx.x] + parts[1][threadIdx.x];
    __syncthreads();
    parts[rank][threadIdx.x] = 0;  // WRONG
}
