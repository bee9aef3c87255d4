// A ticket that is checked before it is used: a trap stands for what must not happen.
// From: device code with `if (slot >= capacity) __trap();`, which no run is to come to.
//
// ptxmm: grid = 3
// ptxmm: args = ["next", "slots", 3]
// ptxmm: [objects]
// ptxmm: next = "u32"
// ptxmm: slots = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: traps = "none"
// ptxmm: bounds = "none outside"
// ptxmm: races = "none"

extern "C" __global__ void take(unsigned *next, unsigned *slots, unsigned capacity)
{
    unsigned slot = atomicAdd(next, 1);
    if (slot >= capacity)
        __trap();
    slots[slot] = blockIdx.x;
}
