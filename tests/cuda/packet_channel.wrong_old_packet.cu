// A channel of packets of data and flags that structures describe; who waits counts its rounds, and after some of them
// looks whether it is to give up.
// Wrong: any packet is taken, also the one that was in the slot before.
// From: the low-latency protocols of collective libraries.
//
// ptxmm: kernel = "channel"
// ptxmm: assume = ["vector=whole"]
// ptxmm: grid = 2
// ptxmm: args = ["peers", "out"]
// ptxmm: [objects]
// ptxmm: peers = { type = "u64", count = 2, init = ["to", "from"] }
// ptxmm: to = { type = "u64", count = 4, init = ["slots", "stop", "credits", 3] }
// ptxmm: from = { type = "u64", count = 4, init = ["slots", "stop", "credits", 3] }
// ptxmm: slots = { type = "u32", count = 16, init = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], align = 16 }
// ptxmm: stop = "u32"
// ptxmm: credits = { type = "u64", init = 3 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

struct Channel {
    uint4 *slots;
    unsigned *stop;
    unsigned long long *credits;
    unsigned long long step;
};

__device__ bool stopped(const Channel *c, unsigned &rounds)
{
    if (++rounds < 10000)
        return false;
    rounds = 0;
    return *(volatile unsigned *)c->stop != 0;
}

extern "C" __global__ void channel(Channel **peers, unsigned *out)
{
    Channel *c = peers[blockIdx.x];
    unsigned rounds = 0;
    unsigned flag = c->step + 1;
    uint4 *slot = c->slots + c->step % 4;
    if (blockIdx.x == 0) {
        while (*(volatile unsigned long long *)c->credits + 4 < c->step + 1)
            if (stopped(c, rounds))
                return;
        asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(slot), "r"(40), "r"(flag), "r"(2)
                     : "memory");
    } else {
        unsigned data0, flag0, data1, flag1;
        do {
            asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(data0), "=r"(flag0), "=r"(data1), "=r"(flag1)
                         : "l"(slot)  // WRONG
                         : "memory");
            if (stopped(c, rounds))
                break;
        } while (flag0 == 0 || flag1 == 0);  // WRONG
        *out = data0 + data1;
        *(volatile unsigned long long *)c->credits = c->step + 1;
    }
    c->step += 1;
}
