// Faults in the text of templates. `// ID@TEXT`: the rule ID reports this line at the first place of TEXT in it.
#include <cstdint>

// -- PTX201: no PTX
__device__ inline int a01(int x, int y) {
  int z;
  asm("add.s32 %0 %1, %2;" : "=r"(z) : "r"(x), "r"(y));  // PTX201@%1
  return z;
}
__device__ inline void a02() {
  asm volatile("{ fence.acq_rel.gpu;" ::: "memory");  // PTX201@{·fence
}
__device__ inline int a03(const int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1;" : "=r"(v) : "l"(p) : "memory");  // PTX201@1;"
  return v;
}
__device__ inline void a04(int* p) {
  asm volatile(
      "fence.acq_rel.gpu\n"
      "st.relaxed.gpu.global.s32 [%0], 1;"  // PTX201@st.relaxed
      :
      : "l"(p)
      : "memory");
}
__device__ inline int a05(int x) {
  int y;
  asm("mov.b32 %0, 08;" : "=r"(y));  // PTX201@08
  return x + y;
}
__device__ inline void a06(int* p) {
  asm volatile("fence.acq_rel.gpu; st.relaxed.gpu.global.s32 [%0], 1" ::"l"(p) : "memory");  // PTX201@1"
}
__device__ inline void a07(int* p) {
  asm volatile("{ st.relaxed.gpu.global.s32 [%0], 1 }" ::"l"(p) : "memory");  // PTX201@1·}
}

// -- PTX202: no such instruction
__device__ inline void b01() { asm volatile("fenc.acq_rel.gpu;" ::: "memory"); }  // PTX202@fenc
__device__ inline void b02() { asm volatile("fence.acqrel.gpu;" ::: "memory"); }  // PTX202@.acqrel
__device__ inline int b03(const int* p) {
  int v;
  asm volatile("ld.release.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX202@.release
  return v;
}
__device__ inline void b04(int* p) {
  asm volatile("st.acquire.gpu.global.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX202@.acquire
}
__device__ inline void b05(int* p) {
  asm volatile("st.weak.gpu.global.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX202@.gpu
}
__device__ inline int b06(const int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX202@.cg
  return v;
}
__device__ inline int b07(int* p) {
  int v;
  asm volatile("atom.relaxed.gpu.global.sub.s32 %0, [%1], 1;" : "=r"(v) : "l"(p) : "memory");  // PTX202@.sub
  return v;
}
__device__ inline int b08(int* p) {
  int v;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 1;" : "=r"(v) : "l"(p) : "memory");  // PTX202@atom
  return v;
}
__device__ inline void b09() { asm volatile("membar.gpu;" ::: "memory"); }  // PTX202@.gpu
__device__ inline void b10(uint32_t b) {
  asm volatile("mbarrier.arrive.release.gpu.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");  // PTX202@.gpu
}
__device__ inline int b11(const int* p) {
  int v;
  asm volatile("ld.global.v2.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX202@%0
  return v;
}
__device__ inline void b12(uint32_t d, const void* s) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 12;" ::"r"(d), "l"(s) : "memory");  // PTX202@12
}
__device__ inline void b13() { asm volatile("fence.acq_rel.device;" ::: "memory"); }  // PTX202@.device
__device__ inline void b14(int* p) {
  asm volatile("red.acquire.gpu.global.add.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX202@.acquire
}

// -- PTX203 to PTX210
__device__ inline int c01(int x) {
  int y;
  asm("add.s32 %0, %1, %2;" : "=r"(y) : "r"(x));  // PTX203@%2
  return y;
}
__device__ inline void c02() { asm volatile("nanosleep.u32 %0;"); }  // PTX203@%0
__device__ inline int c03(int x) {
  int y;
  asm("{ .reg .s32 %r1; neg.s32 %%r1, %1; mov.s32 %0, %%r1; }" : "=r"(y) : "r"(x));  // PTX204@%r1
  return y;
}
__device__ inline int c04(int x) {
  int y;
  asm("mov.u32 %0, %n1;" : "=r"(y) : "r"(x));  // PTX204@%n1
  return y;
}
__device__ inline void c05() {
  asm volatile("{ .reg .u32 %%t; mov.u32 %%t, 64; nanosleep.u32 %%t; }");  // PTX205@%%t
}
__device__ inline int c06(int x) {
  int y;
  asm("add.s32 %0, %1u, 1;" : "=r"(y) : "r"(x));  // PTX207@%1u
  return y;
}
__device__ inline int c07(int x) {
  int y;
  asm(".reg .u32 t1;\n\t"  // PTX208@t1
      "mul.lo.u32 t1, %1, %1;\n\t"
      "mul.lo.u32 %0, t1, %1;"
      : "=r"(y)
      : "r"(x));
  return y;
}
__device__ inline void c08(const int* p) {
  int v;
  asm volatile(
      "again: ld.acquire.gpu.global.s32 %0, [%1];"  // PTX208@again
      "{ .reg .pred p; setp.eq.s32 p, %0, 0; @p bra again; }"
      : "=r"(v)
      : "l"(p)
      : "memory");
}
__device__ inline int c09(int x) {
  int y = 0;
  asm("{ setp.eq.s32 p, %1, 34; @p mov.s32 %0, 1; }" : "+r"(y) : "r"(x));  // PTX209@p,·%1
  return y;
}
__device__ inline int c10(int x) {
  int y;
  asm("{ .reg .b32 t; add.s32 %%t, %1, 1; mov.b32 %0, t; }" : "=r"(y) : "r"(x));  // PTX209@%%t
  return y;
}
__device__ inline int c11(int x) {
  int y;
  asm("{\n"
      "  .reg .pred q;\n"
      "  setp.ne.s32 q, %1, 0;\n"
      "  @qq bra skip;\n"  // PTX209@qq
      "  mov.s32 %0, 1;\n"
      "skip:\n"
      "}"
      : "+r"(y)
      : "r"(x));
  return y;
}
__device__ inline void c12(int* p) {
  asm volatile(R"ptx({
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.s32 [%0], %2; /* PTX203@%2 */
  })ptx" ::"l"(p), "r"(1)  // PTX308@"r"(1)
               : "memory");
}
#define STORE_RELEASE(p, v) \
  asm volatile("st.releas.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory") /* PTX202@.releas */
