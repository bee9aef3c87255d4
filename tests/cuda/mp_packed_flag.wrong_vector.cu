// Message passing with data and flag in one 64-bit word: no fence is needed.
// From: NVIDIA/nccl#824, #1641 (LL lines of 16 bytes).
// Wrong: a vector access is four scalar accesses in no order (8.2.4): the flag can be new while its data is old.
//
// ptxmm: kernel = "mp"
// ptxmm: grid = 2
// ptxmm: args = ["packet", "out"]
// ptxmm: [objects]
// ptxmm: packet = { type = "u32", count = 4 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

extern "C" __global__ void mp(uint4 *packet, unsigned *out)
{
    if (blockIdx.x == 0) {
        asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(packet), "r"(42), "r"(1), "r"(0), "r"(1)
                     : "memory");
    } else {
        unsigned data0, flag0, data1, flag1;
        do {
            asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(data0), "=r"(flag0), "=r"(data1), "=r"(flag1)
                         : "l"(packet)  // WRONG
                         : "memory");
        } while (flag0 == 0 || flag1 == 0);
        *out = data0 + data1;
    }
}
