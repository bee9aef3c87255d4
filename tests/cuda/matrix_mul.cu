// Product of 2x2 tiles through shared memory, two steps.
// From: matrixMul of the CUDA samples, in style.
// Right: a barrier before the tiles are read, and one before they are overwritten.
// ptxmm: kernel = "matrix_mul"
// ptxmm: block = [2, 2]
// ptxmm: args = ["a", "b", "c"]
// ptxmm: [objects]
// ptxmm: a = { type = "f32", count = 8 }
// ptxmm: b = { type = "f32", count = 8 }
// ptxmm: c = { type = "f32", count = 4 }
// ptxmm: [check]
// ptxmm: races = "none"

constexpr int kSize = 2;

extern "C" __global__ void matrix_mul(const float *a, const float *b, float *c)
{
    __shared__ float As[kSize][kSize], Bs[kSize][kSize];
    int x = threadIdx.x, y = threadIdx.y;
    float sum = 0;
    for (int step = 0; step < 2; ++step) {
        As[y][x] = a[y * 2 * kSize + step * kSize + x];
        Bs[y][x] = b[(step * kSize + y) * kSize + x];
        __syncthreads();
        for (int k = 0; k < kSize; ++k)
            sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    c[y * kSize + x] = sum;
}
