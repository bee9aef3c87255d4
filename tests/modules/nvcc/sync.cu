#include <cuda/atomic>
#include <cuda_fp16.h>
#include <cstdio>
__device__ unsigned counter;
__device__ volatile int flag;
__constant__ int table[8] = {1, 2, 3, 5, 8, 13};
__constant__ float weights[3][2] = {{0.5f, 1.5f}, {2.0f}};
__device__ int* pointer = (int*)&counter;
struct Pair { int a; double b; char c[3]; };
__noinline__ __device__ int square(int x, Pair p) { return x * x + p.a + (int)p.b + p.c[1]; }
__global__ void lastBlock(const float* in, float* out, int n, Pair p) {
  __shared__ float part[128];
  __shared__ bool last;
  extern __shared__ int dyn[];
  part[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x] * weights[threadIdx.x % 3][1];
  dyn[threadIdx.x] = table[threadIdx.x & 7];
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) { if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s]; __syncthreads(); }
  if (threadIdx.x == 0) { out[blockIdx.x] = part[0] + square(n, p); __threadfence(); last = atomicInc(&counter, gridDim.x) == gridDim.x - 1; }
  __syncthreads();
  if (last) out[0] = dyn[0];
}
__global__ void spin(cuda::atomic<int, cuda::thread_scope_device>* f, int* data, __half* h) {
  if (threadIdx.x == 0) { while (f->load(cuda::memory_order_acquire) == 0) {} data[1] = data[0]; if (data[0] == 7) printf("seven %d %f\n", data[1], 1.5); }
  asm volatile("{ .reg .pred p; .reg .b32 x; setp.ne.b32 p, %1, 0; @p ld.acquire.gpu.b32 x, [%0]; @!p mov.b32 x, 1; st.relaxed.sys.b32 [%0], x; }" :: "l"(data), "r"(threadIdx.x) : "memory");
  atomicAdd(h, __float2half(1.0f));
}
