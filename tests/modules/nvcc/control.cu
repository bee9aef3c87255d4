#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef int (*Op)(int, int);
__noinline__ __device__ int add(int a, int b) { return a + b; }
__noinline__ __device__ int sub(int a, int b) { return a - b; }
__noinline__ __device__ void fill(int* p, int v) { *p = v; }
__device__ Op ops[2] = {add, sub};
__global__ void choose(int* out, int k, int sel, cudaTextureObject_t t) {
  int v = 0;
  switch (k) { case 0: v = out[1]; break; case 1: v = out[2] * 3; atomicAdd(out, 1); break; case 2: v = 17; fill(out, 3); break; case 3: v = clock(); break;
    case 4: v = out[5] ^ 9; break; case 5: __syncthreads(); v = 77; break; case 6: v = __popc(out[7]); break; default: v = -1; }
  v += ops[sel](v, k);
  v += (int)tex1Dfetch<float>(t, k);
  out[0] = v;
}
__global__ void grid(double* x) { cg::this_grid().sync(); auto b = cg::this_thread_block(); b.sync(); auto t = cg::tiled_partition<16>(b); x[0] = t.shfl_down(threadIdx.x, 2) + sin(x[1]) ; cg::this_cluster().sync(); }
__global__ void __launch_bounds__(256, 2) bounded(int* p) { int local[16]; for (int i = 0; i < 16; i++) local[i] = p[i]; p[0] = local[p[17] & 15]; if (!p[1]) __trap(); }
__global__ void __cluster_dims__(2, 1, 1) clustered(int *p) { __shared__ int s; s = 1; cg::this_cluster().sync(); int* r = cg::this_cluster().map_shared_rank(&s, 1); atomicAdd(r, 1); cg::this_cluster().sync(); p[threadIdx.x] = s; }
