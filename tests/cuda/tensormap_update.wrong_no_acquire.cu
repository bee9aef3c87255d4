// nvcc: -arch=sm_90a
// A tensor map in global memory is changed by one CTA and used by another one.
// From: triton PR 4342 and PR 7293 (device-side descriptors), CUTLASS tma_descriptor_fence_release/acquire for grouped GEMM.
// Wrong: no acquire fence of the tensormap proxy in the CTA that uses the map: a stale address may be used.
// ptxmm: kernel = "tensormap_update"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["map", "new", "ready", "out"]
// ptxmm: [objects]
// ptxmm: old = { type = "u32", count = 4, init = [7, 7, 7, 7] }
// ptxmm: new = { type = "u32", count = 4, init = [9, 9, 9, 9] }
// ptxmm: map = { tensormap = { target = "old", type = "u32", box = [4], dims = [4] } }
// ptxmm: ready = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 9)"
// ptxmm: races = "none"
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

__device__ __forceinline__ void set_address(void *map, const void *target)
{
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" : : "l"(map), "l"(target) : "memory");
}

__device__ __forceinline__ void release_map()
{
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" : : : "memory");
}

__device__ __forceinline__ void acquire_map(const void *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" : : "l"(map) : "memory");
}

__device__ __forceinline__ void tensor_load(void *to, const void *map, int x, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 : : "r"(shared_address(to)), "l"(map), "r"(x), "r"(shared_address(barrier)) : "memory");
}

extern "C" __global__ void tensormap_update(void *map, const unsigned *target, unsigned *ready, unsigned *out)
{
    __shared__ alignas(128) unsigned box[4];
    __shared__ uint64_t full;
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        set_address(map, target);
        release_map();
        asm volatile("st.release.gpu.global.u32 [%0], 1;" : : "l"(ready) : "memory");
    } else {
        unsigned flag;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(ready) : "memory");
        } while (flag == 0);
        barrier_init(&full, 1);
        fence_barrier_init();
        barrier_expect(&full, sizeof box);
        tensor_load(box, map, 0, &full);  // WRONG
        barrier_wait(&full, 0);
        *out = box[0];
    }
}
