// Two rows of a matrix are loaded by one tensor copy of two dimensions, through a map that the host has encoded.
// From: the TMA section of the CUDA C++ Programming Guide (cuTensorMapEncodeTiled, multi-dimensional arrays).
// Wrong: the rows are read while the copy may still be writing them.
// ptxmm: kernel = "tma_tile"
// ptxmm: args = ["map", "out"]
// ptxmm: [objects]
// ptxmm: matrix = { type = "s32", count = 12, init = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23] }
// ptxmm: out = { type = "s32", count = 2 }
// ptxmm: [objects.map]
// ptxmm: type = "CUtensorMap"
// ptxmm: tensorDataType = "CU_TENSOR_MAP_DATA_TYPE_INT32"
// ptxmm: globalAddress = "matrix"
// ptxmm: globalDim = [4, 3]
// ptxmm: globalStrides = [16]
// ptxmm: boxDim = [4, 2]
// ptxmm: elementStrides = [1, 1]
// ptxmm: swizzle = "CU_TENSOR_MAP_SWIZZLE_NONE"
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 10 /\ out[1] == 20)'
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

__device__ __forceinline__ void tile_load(void *to, const CUtensorMap *map, int x, int y, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 : : "r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier)) : "memory");
}

extern "C" __global__ void tma_tile(const __grid_constant__ CUtensorMap map, int *out)
{
    __shared__ alignas(128) int tile[2][4];
    __shared__ uint64_t full;
    barrier_init(&full, 1);
    fence_barrier_init();
    barrier_expect(&full, sizeof tile);
    tile_load(tile, &map, 0, 1, &full);
    out[0] = tile[0][0];  // WRONG
    out[1] = tile[1][0];
    barrier_wait(&full, 0);
}
