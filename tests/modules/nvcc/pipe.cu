#include <cuda/barrier>
#include <cuda/pipeline>
#include <mma.h>
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void bar(int* in, int* out) {
  __shared__ alignas(16) int buf[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier b;
  if (threadIdx.x == 0) { init(&b, blockDim.x); }
  __syncthreads();
  cuda::memcpy_async(buf + threadIdx.x, in + threadIdx.x, cuda::aligned_size_t<4>(4), b);
  b.arrive_and_wait();
  out[threadIdx.x] = buf[255 - threadIdx.x];
}
__global__ void pipe(int* in, int* out) {
  __shared__ int buf[2][64];
  auto p = cuda::make_pipeline();
  for (int i = 0; i < 8; i++) { p.producer_acquire(); cuda::memcpy_async(&buf[i & 1][threadIdx.x], in + i * 64 + threadIdx.x, 4, p); p.producer_commit(); cuda::pipeline_consumer_wait_prior<0>(p); out[i * 64 + threadIdx.x] = buf[i & 1][threadIdx.x] * 2; p.consumer_release(); }
}
__global__ void wm(half* a, half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa; fragment<matrix_b, 16, 16, 16, half, col_major> fb; fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f); load_matrix_sync(fa, a, 16); load_matrix_sync(fb, b, 16); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 16, mem_row_major);
}
