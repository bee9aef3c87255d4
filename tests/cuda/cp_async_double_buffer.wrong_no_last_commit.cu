// Double buffering with cp.async: the copy of the next tile is in flight while this one is used; __syncthreads() shows it to the other warp.
// From: CUTLASS multistage mainloop (mma_multistage.h) and the cp.async section of the CUDA C++ Programming Guide.
// Wrong: no empty group is committed for the last tile, so wait_group 1 leaves the copy of that tile in flight.
//        The same count error: csarofeen/pytorch PR 2457, tilelang PR 2505.
// ptxmm: kernel = "cp_async_double_buffer"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 6, init = [10, 20, 11, 21, 12, 22] }
// ptxmm: out = { type = "u32", count = 6 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 20 /\\ out[1] == 10 /\\ out[2] == 21 /\\ out[3] == 11 /\\ out[4] == 22 /\\ out[5] == 12)"
// ptxmm: races = "none"

constexpr int kTiles = 3;

__device__ __forceinline__ void copy_async(unsigned *to, const unsigned *from)
{
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }

template <int N>
__device__ __forceinline__ void wait_group() { asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory"); }

extern "C" __global__ void cp_async_double_buffer(const unsigned *in, unsigned *out)
{
    __shared__ unsigned buffer[2][2];
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    if (leader)
        copy_async(&buffer[0][warp], &in[warp]);
    commit();
    for (int tile = 0; tile < kTiles; ++tile) {
        if (tile + 1 < kTiles) {
            if (leader)
                copy_async(&buffer[(tile + 1) % 2][warp], &in[2 * (tile + 1) + warp]);
            commit();
        }
        wait_group<1>();
        __syncthreads();
        unsigned value = buffer[tile % 2][warp ^ 1];  // WRONG
        if (leader)
            out[2 * tile + warp] = value;
        __syncthreads();
    }
}
