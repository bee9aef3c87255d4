// A ticket that is checked before it is used: a trap stands for what must not happen.
// From: device code with `if (slot >= capacity) __trap();`, which no run is to come to.
// Wrong: each takes two, and there are too few.
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
    unsigned slot = atomicAdd(next, 2);
    if (slot >= capacity)
        __trap();  // WRONG
    slots[slot] = blockIdx.x;
}
