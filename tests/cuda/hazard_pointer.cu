// A hazard pointer: announce, fence.sc, look again; the reclaimer unlinks, fence.sc, looks for announcements.
// From: safe memory reclamation of concurrent GPU containers (Michael, 2004).
// Right: store buffering: with fence.sc on both sides one of the two sees the other, so the node is not reused while
// it is read.
//
// ptxmm: kernel = "reclaim"
// ptxmm: grid = 2
// ptxmm: args = ["head", "hazard", "value", "out"]
// ptxmm: [objects]
// ptxmm: head = { type = "u32", init = 1 }
// ptxmm: hazard = "u32"
// ptxmm: value = { type = "u32", count = 2, init = [0, 42] }
// ptxmm: out = { type = "u32", init = 42 }
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

__device__ __forceinline__ unsigned ld_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void st_relaxed(unsigned *p, unsigned v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ void st_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Node 1 is in use; 0 is no node. The reader announces what it reads, the reclaimer unlinks it and looks for readers.
extern "C" __global__ void reclaim(unsigned *head, unsigned *hazard, unsigned *value, unsigned *out)
{
    if (blockIdx.x == 0) {
        unsigned node = ld_acquire(head);
        st_relaxed(hazard, node);
        asm volatile("fence.sc.gpu;" ::: "memory");
        if (node != 0 && ld_acquire(head) == node)
            *out = value[node];
        st_release(hazard, 0);
    } else {
        st_relaxed(head, 0);
        asm volatile("fence.sc.gpu;" ::: "memory");
        if (ld_acquire(hazard) == 0)
            value[1] = 0;
    }
}
