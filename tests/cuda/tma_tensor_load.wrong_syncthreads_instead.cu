// One box of a tensor is loaded through a tensor map (cp.async.bulk.tensor); every warp of the CTA waits for it and reads its part.
// From: the TMA section of the CUDA C++ Programming Guide (one-dimensional tensor map, __grid_constant__ parameter).
// Wrong: __syncthreads() orders the issue of the copy, not its completion: nobody waits for the mbarrier.
// ptxmm: kernel = "tma_tensor_load"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["map", "out"]
// ptxmm: [objects]
// ptxmm: data = { type = "u32", count = 8, init = [0, 1, 2, 3, 14, 15, 16, 17] }
// ptxmm: map = { tensormap = { target = "data", type = "u32", box = [4], dims = [8] } }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 14 /\\ out[1] == 15)"
// ptxmm: races = "none"
#include <cuda.h>
#include <cstdint>

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(uint64_t *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void fence_barrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

__device__ __forceinline__ void barrier_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 : : "r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t *barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void tensor_load(void *to, const CUtensorMap *map, int x, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 : : "r"(shared_address(to)), "l"(map), "r"(x), "r"(shared_address(barrier)) : "memory");
}

extern "C" __global__ void tma_tensor_load(const __grid_constant__ CUtensorMap map, unsigned *out)
{
    __shared__ alignas(128) unsigned box[4];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(&full, sizeof box);
        tensor_load(box, &map, 4, &full);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        out[threadIdx.x / 32] = box[threadIdx.x / 32];  // WRONG
}
