#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
__device__ cuda::barrier<cuda::thread_scope_device> barrier_of_3{3};
__device__ cuda::latch<cuda::thread_scope_device> latch_of_4{4};
__device__ cuda::counting_semaphore<cuda::thread_scope_device> semaphore_of_5{5};
__device__ cuda::counting_semaphore<cuda::thread_scope_device, 7> bounded_semaphore_of_6{6};
__device__ cuda::binary_semaphore<cuda::thread_scope_device> binary_semaphore_of_1{1};
__device__ cuda::atomic<unsigned, cuda::thread_scope_device> atomic_of_7{7};
__device__ cuda::atomic<long long, cuda::thread_scope_device> atomic_of_8{8};
__device__ cuda::atomic<float, cuda::thread_scope_device> atomic_of_1_5{1.5f};
__device__ cuda::atomic<unsigned char, cuda::thread_scope_device> atomic_of_9{9};
extern "C" __global__ void use(void **out)
{
    out[0] = &barrier_of_3; out[1] = &latch_of_4; out[2] = &semaphore_of_5; out[3] = &bounded_semaphore_of_6;
    out[4] = &binary_semaphore_of_1; out[5] = &atomic_of_7; out[6] = &atomic_of_8; out[7] = &atomic_of_1_5; out[8] = &atomic_of_9;
}
