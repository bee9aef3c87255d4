// Softmax of one row by two warps: the largest element and the sum go through one buffer in shared memory.
// From: block softmax kernels as in FasterTransformer, vLLM and the CUDA samples (threads of one lane stand for their warps).
// Wrong: without a barrier between the two reductions a sum may overwrite a maximum that the other warp has yet to read.
// ptxmm: kernel = "softmax_rows"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "f32", count = 64, init = 0.5 }
// ptxmm: out = { type = "f32", count = 64 }
// ptxmm: [check]
// ptxmm: races = "none"

constexpr int kWarps = 2;

extern "C" __global__ void softmax_rows(const float *in, float *out)
{
    __shared__ float buffer[kWarps];
    unsigned warp = threadIdx.x / 32;
    float value = in[threadIdx.x];
    buffer[warp] = value;
    __syncthreads();
    float largest = buffer[0];
    for (int i = 1; i < kWarps; ++i)
        largest = fmaxf(largest, buffer[i]);
    value = __expf(value - largest);
    buffer[warp] = value;  // WRONG
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < kWarps; ++i)
        sum += buffer[i];
    out[threadIdx.x] = __fdividef(value, sum);
}
