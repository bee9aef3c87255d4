// A node is filled, then its pointer is published; the reader follows the pointer (the RCU idiom).
// From: code that ports the consume order of Linux RCU.
// Wrong: the pointer is read relaxed: PTX gives address dependencies no order, so the node may look empty.
//
// ptxmm: kernel = "publish"
// ptxmm: grid = 2
// ptxmm: args = ["node", "head", "out"]
// ptxmm: [objects]
// ptxmm: node = "u32"
// ptxmm: head = "u64"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

__device__ __forceinline__ void publish_pointer(unsigned **head, unsigned *node)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(head), "l"(node) : "memory");
}

__device__ __forceinline__ unsigned *read_pointer(unsigned **head)
{
    unsigned *node;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(node) : "l"(head) : "memory");
    return node;
}

extern "C" __global__ void publish(unsigned *node, unsigned **head, unsigned *out)
{
    if (blockIdx.x == 0) {
        *node = 42;
        publish_pointer(head, node);
    } else {
        unsigned *seen;
        while ((seen = read_pointer(head)) == nullptr) {
        }
        *out = *seen;  // WRONG
    }
}
