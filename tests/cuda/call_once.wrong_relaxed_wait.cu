// One CTA wins a compare-and-swap and initialises, the others wait until it is ready.
// From: call_once of libcu++-based containers; page and bucket initialisation of GPU allocators.
// Wrong: losers wait with relaxed loads.
//
// ptxmm: kernel = "use_table"
// ptxmm: grid = 2
// ptxmm: args = ["state", "table", "out"]
// ptxmm: [objects]
// ptxmm: state = "u32"
// ptxmm: table = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 42 /\ out[1] == 42)'
// ptxmm: races = "none"

#include <cuda/atomic>

enum : unsigned { EMPTY, BUSY, READY };

extern "C" __global__ void use_table(unsigned *state, unsigned *table, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> phase(*state);
    unsigned seen = EMPTY;
    if (phase.compare_exchange_strong(seen, BUSY, cuda::memory_order_relaxed, cuda::memory_order_relaxed)) {
        *table = 42;
        phase.store(READY, cuda::memory_order_release);
    } else {
        while (phase.load(cuda::memory_order_relaxed) != READY) {
        }
    }
    out[blockIdx.x] = *table;  // WRONG
}
