// nvcc: -arch=sm_100a
// A tile of a product on the tensor cores of the 5th generation. One warp loads stages of A and B by bulk copies, a second
// one multiplies them into tensor memory as they come, and four more warps take the result from there when all is done.
// Each stage is filled again behind the commit of the products that have read it.
#include <cstdint>

// ptxmm: kernel = "tile"
// ptxmm: grid = 2
// ptxmm: block = 192
// ptxmm: assume = ["issue=closure"]
// ptxmm: args = ["a", "b", "out", 3]
// ptxmm: [objects]
// ptxmm: a = { type = "u32", count = 12288, align = 128 }
// ptxmm: b = { type = "u32", count = 1536, align = 128 }
// ptxmm: out = { type = "f32", count = 8192 }
// ptxmm: [check]
// ptxmm: races = "none"

constexpr int M = 128, N = 32, STAGES = 2;
constexpr unsigned A_BYTES = M * 64, B_BYTES = N * 64;
// D of f32, A and B of bf16 along K, without a swizzle: core matrices of A are 2048 bytes apart along K, those of B 512.
constexpr unsigned INSTRUCTION = 1u << 4 | 1u << 7 | 1u << 10 | (N / 8) << 17 | (M / 16) << 24;

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

__device__ void load(void *to, const void *from, unsigned bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}

__device__ void multiply(unsigned accumulator, uint64_t a, uint64_t b, bool adds)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}"
                 ::"r"(accumulator), "l"(a), "l"(b), "r"(INSTRUCTION), "r"((unsigned)adds) : "memory");
}

__device__ void commit(uint64_t *barrier)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 ::"r"(shared_address(barrier)) : "memory");
}

__global__ void tile(const unsigned char *a, const unsigned char *b, float *out, int blocks)
{
    __shared__ alignas(128) unsigned char stage_a[STAGES][A_BYTES];
    __shared__ alignas(128) unsigned char stage_b[STAGES][B_BYTES];
    __shared__ uint64_t full[STAGES], empty[STAGES], done;
    __shared__ unsigned base;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (warp == 5) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
                     ::"r"(shared_address(&base)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    }
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 1);
        }
        barrier_init(&done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const unsigned accumulator = base;

    if (threadIdx.x == 128) {
        for (int k = 0; k < blocks; k++) {
            const int s = k % STAGES, round = k / STAGES;
            if (round > 0)
                wait(&empty[s], (round - 1) & 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         ::"r"(shared_address(&full[s])), "r"(A_BYTES + B_BYTES) : "memory");
            load(stage_a[s], a + (blockIdx.x * blocks + k) * A_BYTES, A_BYTES, &full[s]);
            load(stage_b[s], b + k * B_BYTES, B_BYTES, &full[s]);
        }
    } else if (threadIdx.x == 160) {
        for (int k = 0; k < blocks; k++) {
            const int s = k % STAGES;
            wait(&full[s], (k / STAGES) & 1);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
            for (int step = 0; step < 2; step++)
                multiply(accumulator, descriptor(stage_a[s] + step * 2 * M * 16, M * 16),
                         descriptor(stage_b[s] + step * 2 * N * 16, N * 16), k + step > 0);
            commit(&empty[s]);
        }
        commit(&done);
    } else if (warp < 4) {
        wait(&done, 0);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (int column = 0; column < N; column += 4) {
            unsigned r0, r1, r2, r3;
            asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                         : "r"(accumulator + (warp * 32 << 16) + column));
            asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
            float4 row = make_float4(__uint_as_float(r0), __uint_as_float(r1), __uint_as_float(r2), __uint_as_float(r3));
            reinterpret_cast<float4 *>(out + (blockIdx.x * M + warp * 32 + lane) * N)[column / 4] = row;
        }
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    }
    if (warp == 5)  // WRONG
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(accumulator));
}
