// Two GPUs add their halves by a table of pointers to each other's memory that is passed by value.
// From: arrays of peer pointers in the arguments of all-reduce kernels (FBGEMM, TensorRT-LLM), indexed by rank.
// Wrong: the flag is stored relaxed, so that nothing hands on the word.
// (As the kernel picks the pointers by its rank, nvcc copies the table to local memory first.)
//
// ptxmm: kernel = "peer_table"
// ptxmm: [[grids]]
// ptxmm: gpu = 0
// ptxmm: args = [{ fields = [{ u64 = "word0" }, { u64 = "word1" }, { u64 = "flag0" }, { u64 = "flag1" }] }, 0, "out0"]
// ptxmm: [[grids]]
// ptxmm: gpu = 1
// ptxmm: args = [{ fields = [{ u64 = "word0" }, { u64 = "word1" }, { u64 = "flag0" }, { u64 = "flag1" }] }, 1, "out1"]
// ptxmm: [objects]
// ptxmm: word0 = "u32"
// ptxmm: word1 = "u32"
// ptxmm: flag0 = "u32"
// ptxmm: flag1 = "u32"
// ptxmm: out0 = "u32"
// ptxmm: out1 = "u32"
// ptxmm: [check]
// ptxmm: races = "none"

#include <cuda_fp16.h>

struct Peers {
    __half2 *words[2];
    unsigned *flags[2];
};

extern "C" __global__ void peer_table(Peers peers, int rank, __half2 *out)
{
    unsigned *theirs = peers.flags[1 - rank], seen = 0;
    *peers.words[rank] = __half2(rank, 1);
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(1) : "memory");
    do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(peers.flags[rank]) : "memory");
    } while (seen == 0);
    *out = __hadd2(*peers.words[0], *peers.words[1]);  // WRONG
}
