// Work queue: one CTA publishes items with a ready flag each; two CTAs take a ticket with atomicAdd and wait for the flag of that item.
// From: dynamic schedulers of persistent kernels (stream-K, sparse triangular solve, mega-kernels: ticket + ready flags).
// Right: the ticket is unique by the atomicity of atom.add; the flag of the item is released after it is written and acquired before it is read.
// ptxmm: kernel = "work_queue"
// ptxmm: grid = 3
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["item", "ready", "ticket", "out"]
// ptxmm: [objects]
// ptxmm: item = { type = "u32", count = 2 }
// ptxmm: ready = { type = "u32", count = 2 }
// ptxmm: ticket = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11)"
// ptxmm: races = "none"

__device__ __forceinline__ void publish(unsigned *flag)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;" : : "l"(flag) : "memory");
}

__device__ __forceinline__ bool is_ready(const unsigned *flag)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    return v != 0;
}

extern "C" __global__ void work_queue(unsigned *item, unsigned *ready, unsigned *ticket, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 2; ++i) {
            item[i] = 10 + i;
            publish(&ready[i]);
        }
    } else {
        unsigned mine = atomicAdd(ticket, 1u);
        while (!is_ready(&ready[mine])) { }
        out[mine] = item[mine];
    }
}
