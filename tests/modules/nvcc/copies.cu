// Tensor and bulk copies, mbarriers, clusters, tables of pointers and structures, textures of the old kind.
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_fp16.h>
#include <cstdint>
namespace ptx = cuda::ptx;
struct Node { int value; const Node* next; float weight[3]; };
__device__ Node last = {3, nullptr, {1.0f}};
__device__ Node list[2] = {{1, &last, {0.5f, 1.5f}}, {2, &last, {}}};
__managed__ long long total = -1;
__device__ double doubles[2][2] = {{1.0, -2.5}, {3e100}};
__device__ int4 vector = {1, 2, 3, 4};
extern __device__ int elsewhere;
__device__ __half half_value;
__global__ void bulk(const int* in, int* out) {
  extern __shared__ __align__(128) unsigned char raw[];
  __shared__ uint64_t bar;
  int* buffer = reinterpret_cast<int*>(raw);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buffer, in, 1024, &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 1024);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  out[threadIdx.x] = buffer[threadIdx.x ^ 1] + (int)total + list[out[0]].value;
  doubles[0][1] = doubles[1][0] * 0.1;
}
__global__ void shadow(int* p) {
  asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 r;\n\tsetp.ne.b32 p, %1, 0;\n\t@p ld.relaxed.sys.b32 r, [%0+4];\n\t@!p mov.b32 r, 7;\n\t"
               "{\n\t.reg .b32 r;\n\tmov.b32 r, 9;\n\tst.b32 [%0], r;\n\t}\n\tst.release.gpu.b32 [%0+8], r;\n\t}" :: "l"(p), "r"(p[3]) : "memory");
  asm volatile("{\n\t.reg .b32 r;\n\tWAIT:\n\tld.acquire.gpu.b32 r, [%0];\n\t.reg .pred q;\n\tsetp.eq.b32 q, r, 0;\n\t@q bra WAIT;\n\t}" :: "l"(p) : "memory");
  asm volatile("{\n\t.reg .b32 r;\n\tWAIT:\n\tatom.cas.b32 r, [%0], 0, 1;\n\t.reg .pred q;\n\tsetp.ne.b32 q, r, 0;\n\t@q bra WAIT;\n\t}" :: "l"(p + 1) : "memory");
}
