// nvcc: -arch=sm_90
// Tiles for mma.sync in two stages of shared memory: the copy of the next tile is in flight while this one is multiplied.
// From: CUTLASS multistage mainloop (mma_multistage.h) and Triton's matmul for Ampere: cp.async, shared memory, mma.sync.
// Right: __syncthreads() at the end of each round orders the reads of a stage before the copy that overwrites it. What mma gives
//        is not worked out, and no address or branch depends on it.
// ptxmm: kernel = "mma_stages"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["a", "c"]
// ptxmm: [objects]
// ptxmm: a = { type = "b32", count = 6 }
// ptxmm: c = { type = "f32", count = 8 }
// ptxmm: [check]
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

__device__ __forceinline__ void mma(float (&d)[4], unsigned a, unsigned b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %4, %5}, {%4, %5}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
}

extern "C" __global__ void mma_stages(const unsigned *a, float *c)
{
    __shared__ unsigned stage[2][2];
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    float d[4] = {0, 0, 0, 0};
    if (leader)
        copy_async(&stage[0][warp], &a[warp]);
    commit();
    for (int tile = 0; tile < kTiles; ++tile) {
        if (leader && tile + 1 < kTiles)
            copy_async(&stage[(tile + 1) % 2][warp], &a[2 * (tile + 1) + warp]);
        commit();
        wait_group<1>();
        __syncthreads();
        mma(d, stage[tile % 2][0], stage[tile % 2][1]);
        __syncthreads();
    }
    if (leader)
        for (int i = 0; i < 4; ++i)
            c[4 * warp + i] = d[i];
}
