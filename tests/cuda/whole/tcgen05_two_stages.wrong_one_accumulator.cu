// nvcc: -arch=sm_100a
// Two accumulators in turn: one warp computes the product of the next tile while four warps take that of the last one out
// of tensor memory. A and B are the same for all tiles, and stored once by all threads.
#include <cstdint>

// ptxmm: kernel = "turns"
// ptxmm: grid = 2
// ptxmm: block = 160
// ptxmm: args = ["out", 4]
// ptxmm: [objects]
// ptxmm: out = { type = "f32", count = 16384 }
// ptxmm: [check]
// ptxmm: races = "none"

constexpr int M = 128, N = 16, STAGES = 2;
// D of f32, A and B of f16 along K, without a swizzle.
constexpr unsigned INSTRUCTION = 1u << 4 | (N / 8) << 17 | (M / 16) << 24;

__device__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ uint64_t descriptor(const void *matrix, unsigned along_k)
{
    return (uint64_t)((shared_address(matrix) & 0x3FFFF) >> 4) | (uint64_t)(along_k >> 4) << 16
           | (uint64_t)(128 >> 4) << 32 | (uint64_t)1 << 46;
}

__device__ void barrier_init(uint64_t *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ void wait(uint64_t *barrier, unsigned parity)
{
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
                 "@!p bra again;\n\t}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

__device__ void after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ void before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }

__global__ void turns(float *out, int tiles)
{
    __shared__ alignas(128) uint4 a[M * 2];
    __shared__ alignas(128) uint4 b[N * 2];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    __shared__ unsigned base;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    for (int i = threadIdx.x; i < M * 2; i += blockDim.x)
        a[i] = make_uint4(i, i, i, i);
    if (threadIdx.x < N * 2)
        b[threadIdx.x] = make_uint4(0, 0, 0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (warp == 4) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
                     ::"r"(shared_address(&base)), "r"(32) : "memory");
        if (lane == 0) {
            for (int s = 0; s < STAGES; s++) {
                barrier_init(&full[s], 1);
                barrier_init(&empty[s], 128);
            }
        }
    }
    before_sync();
    __syncthreads();
    after_sync();
    const unsigned memory = base;

    if (warp == 4) {
        if (lane == 0) {
            for (int tile = 0; tile < tiles; tile++) {
                const int s = tile % STAGES, round = tile / STAGES;
                if (round > 0)
                    wait(&empty[s], (round - 1) & 1);
                after_sync();
                asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, 0, 0;\n\t"  // WRONG
                             "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}"
                             ::"r"(memory), "l"(descriptor(a, M * 16)), "l"(descriptor(b, N * 16)),
                             "r"(INSTRUCTION) : "memory");
                asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                             ::"r"(shared_address(&full[s])) : "memory");
            }
        }
    } else {
        for (int tile = 0; tile < tiles; tile++) {
            const int s = tile % STAGES, round = tile / STAGES;
            wait(&full[s], round & 1);
            after_sync();
            unsigned r[8];
            for (int column = 0; column < N; column += 8) {
                asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                             : "r"(memory + (warp * 32 << 16) + column));
                asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
                float *to = out + ((blockIdx.x * tiles + tile) * M + warp * 32 + lane) * N + column;
                for (int i = 0; i < 8; i++)
                    to[i] = __uint_as_float(r[i]);
            }
            before_sync();
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[s])) : "memory");
        }
    }
    before_sync();
    __syncthreads();
    after_sync();
    if (warp == 4) {
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(memory), "r"(32));
    }
}
