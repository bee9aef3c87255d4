// One kernel writes an array, the next one on the stream reads all of it.
// From: every sequence of kernels on one stream (CUDA C++ Programming Guide 3.2.8.5, streams).
// Right: a grid begins when those before it on its stream have ended, with all that they have written.
//
// ptxmm: args = ["x", "y"]
// ptxmm: [[grids]]
// ptxmm: kernel = "produce"
// ptxmm: grid = 2
// ptxmm: [[grids]]
// ptxmm: kernel = "consume"
// ptxmm: block = 2
// ptxmm: [objects]
// ptxmm: x = { type = "u32", count = 2 }
// ptxmm: y = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (y[0] == 2 /\ y[1] == 1)'
// ptxmm: races = "none"

extern "C" __global__ void produce(unsigned *x, unsigned *y)
{
    x[blockIdx.x] = blockIdx.x + 1;
    y[blockIdx.x] = 0;
}

extern "C" __global__ void consume(const unsigned *x, unsigned *y)
{
    y[threadIdx.x] = x[1 - threadIdx.x];
}
