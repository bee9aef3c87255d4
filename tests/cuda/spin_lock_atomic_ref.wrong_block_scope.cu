// A spin lock of cuda::atomic_ref: compare_exchange_weak(acquire), store(release).
// From: libcu++ (CCCL); the idiom of cuCollections and of RAFT locks.
// Wrong: thread_scope_block: the lock does not exclude threads of another CTA.
//
// ptxmm: kernel = "locked_add"
// ptxmm: grid = 2
// ptxmm: args = ["lock", "counter"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: counter = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (counter == 2)"
// ptxmm: races = "none"

#include <cuda/atomic>

using lock_ref = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;

extern "C" __global__ void locked_add(unsigned *lock, unsigned *counter)
{
    lock_ref word(*lock);
    unsigned expected = 0;
    while (!word.compare_exchange_weak(expected, 1, cuda::memory_order_acquire))
        expected = 0;
    *counter += 1;  // WRONG
    word.store(0, cuda::memory_order_release);
}
