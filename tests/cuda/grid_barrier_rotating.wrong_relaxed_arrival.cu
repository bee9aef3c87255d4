// A grid barrier with three counters in turn: who comes sets the next one to zero, for the barrier after this one.
// From: mscclpp (DeviceSyncer).
// Right: a counter is set to zero before the arrival that releases it, and counts no more since the barrier before the last. All CTAs
// write the same zero and the same number of a counter, at the same time: races of equal values.
// ptxmm: kernel = "grid_barrier_rotating"
// ptxmm: grid = 2
// ptxmm: args = ["barrier", "items", "out"]
// ptxmm: assume = ["same-value-races"]
// ptxmm: [objects]
// ptxmm: barrier = { type = "u32", count = 4 }
// ptxmm: items = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = 'forall (out[0] == 2 /\ out[1] == 1)'
// ptxmm: races = "none"

struct Barrier {
    unsigned count[3];
    unsigned current;

    __device__ void wait(unsigned ctas)
    {
        const unsigned turn = (current + 1) % 3;
        count[(turn + 1) % 3] = 0;
        unsigned ticket;
        asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(&count[turn]) : "memory"); // WRONG
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ticket) : "l"(&count[turn]) : "memory");
        while (ticket != ctas);
        current = turn;
    }
};

extern "C" __global__ void grid_barrier_rotating(Barrier *barrier, unsigned *items, unsigned *out)
{
    items[blockIdx.x] = blockIdx.x + 1;
    barrier->wait(2);
    out[blockIdx.x] = items[1 - blockIdx.x];
}
