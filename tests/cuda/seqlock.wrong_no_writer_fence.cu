// A sequence lock: the writer makes the sequence odd, writes, makes it even; the reader repeats until it saw one even
// value twice.
// From: statistics and metadata blocks that a persistent kernel publishes; Boehm, Can Seqlocks Get Along with
// Programming Language Memory Models (MSPC 2012).
// Wrong: the writer has no fence behind the odd value: new data may be seen while the sequence still looks untouched.
//
// ptxmm: kernel = "seqlock"
// ptxmm: grid = 2
// ptxmm: args = ["sequence", "pair", "out"]
// ptxmm: [objects]
// ptxmm: sequence = "u32"
// ptxmm: pair = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = '~exists (~(out[0] == out[1]))'
// ptxmm: races = "none"
// ptxmm: unroll = 2

#include <cuda/atomic>

using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void seqlock(unsigned *sequence, unsigned *pair, unsigned *out)
{
    word version(*sequence), left(pair[0]), right(pair[1]);
    if (blockIdx.x == 0) {
        version.store(1, cuda::memory_order_relaxed);
        left.store(5, cuda::memory_order_relaxed);
        right.store(5, cuda::memory_order_relaxed);
        version.store(2, cuda::memory_order_release);
    } else {
        unsigned before, after, first, second;
        do {
            before = version.load(cuda::memory_order_acquire);
            first = left.load(cuda::memory_order_relaxed), second = right.load(cuda::memory_order_relaxed);
            cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
            after = version.load(cuda::memory_order_relaxed);  // WRONG
        } while (before != after || before % 2 != 0);
        out[0] = first;
        out[1] = second;
    }
}
