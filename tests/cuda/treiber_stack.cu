// A lock-free stack of node numbers: push by compare-and-swap(release), pop by load(acquire) and compare-and-swap.
// From: free lists of GPU memory allocators (Treiber, 1986).
// Right: the popping CTA acquires the release of the push whose node it takes, before it reads next and value.
//
// ptxmm: kernel = "stack"
// ptxmm: grid = 2
// ptxmm: args = ["head", "next", "value", "out"]
// ptxmm: [objects]
// ptxmm: head = { type = "u32", init = 0 }
// ptxmm: next = { type = "u32", count = 2 }
// ptxmm: value = { type = "u32", count = 2 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"
// ptxmm: unroll = 1

#include <cuda/atomic>

using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// Nodes are numbered from 1; 0 is the empty stack.
extern "C" __global__ void stack(unsigned *head, unsigned *next, unsigned *value, unsigned *out)
{
    word top(*head);
    if (blockIdx.x == 0) {
        unsigned node = 1, below = top.load(cuda::memory_order_relaxed);
        value[node] = 42;
        do {
            next[node] = below;
        } while (!top.compare_exchange_weak(below, node, cuda::memory_order_release, cuda::memory_order_relaxed));
    } else {
        unsigned node, taken;
        do {
            node = taken = top.load(cuda::memory_order_acquire);
        } while (node == 0 || !top.compare_exchange_weak(taken, next[node], cuda::memory_order_acquire));
        *out = value[node];
    }
}
