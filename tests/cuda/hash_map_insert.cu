// Insertion into an open-addressing map in two steps: claim the key, store the value; a finder waits for a value.
// From: static_map of cuCollections, insertion by CAS and dependent write.
// Right: the finder does not trust the key alone: it polls the value itself, one strong scalar, until it is no longer
// the empty one.
//
// ptxmm: kernel = "hash_map"
// ptxmm: grid = 2
// ptxmm: args = ["key", "value", "out"]
// ptxmm: [objects]
// ptxmm: key = { type = "u32", count = 2 }
// ptxmm: value = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", init = 42 }
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

#include <cuda/atomic>

using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

enum : unsigned { EMPTY = 0, WANTED = 7, ABSENT = 0 };

// One slot of an open-addressing map: the key is claimed first, then the value is stored.
extern "C" __global__ void hash_map(unsigned *key, unsigned *value, unsigned *out)
{
    if (blockIdx.x == 0) {
        unsigned expected = EMPTY;
        if (word(key[1]).compare_exchange_strong(expected, WANTED, cuda::memory_order_relaxed))
            word(value[1]).store(42, cuda::memory_order_relaxed);
    } else if (word(key[1]).load(cuda::memory_order_relaxed) == WANTED) {
        unsigned found;
        while ((found = word(value[1]).load(cuda::memory_order_relaxed)) == ABSENT) {
        }
        *out = found;
    }
}
