// Bounded multi-producer queue with a sequence number per slot: two producers claim slots with atomicAdd, one consumer empties them in order.
// From: D. Vyukov's bounded queue as ported to GPUs (e.g. the broker queue, https://github.com/GPUPeople/the-broker-queue).
// Wrong: the sequence is stored relaxed: no release pattern, so the consumer may read the old payload.
// ptxmm: kernel = "bounded_queue"
// ptxmm: grid = 3
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["payload", "sequence", "tail", "out"]
// ptxmm: [objects]
// ptxmm: payload = { type = "u32", count = 2 }
// ptxmm: sequence = { type = "u32", count = 2 }
// ptxmm: tail = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 21)"
// ptxmm: races = "none"
#include <cuda/atomic>

using counter = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void bounded_queue(unsigned *payload, unsigned *sequence, unsigned *tail, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x < 2) {
        unsigned position = counter(*tail).fetch_add(1, cuda::memory_order_relaxed);
        payload[position] = 10 + blockIdx.x;
        counter(sequence[position]).store(position + 1, cuda::memory_order_relaxed);
    } else {
        unsigned sum = 0;
        for (unsigned i = 0; i < 2; ++i) {
            while (counter(sequence[i]).load(cuda::memory_order_acquire) != i + 1) { }
            sum += payload[i];  // WRONG
        }
        *out = sum;
    }
}
