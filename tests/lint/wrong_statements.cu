// Faults of asm statements. `// ID@TEXT`: the rule ID reports this line at the first place of TEXT in it.
#include <cstdint>

// -- PTX101: not volatile, no clobber, and an output
__device__ inline int a01(const int* p) {
  int v;
  asm("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p));  // PTX101@asm
  return v;
}
__device__ inline int a02(int* p) {
  int v;
  __asm__("atom.global.add.s32 %0, [%1], 1;"  // PTX101@__asm__ PTX102@atom.global
          : "=r"(v)
          : "l"(p));
  return v;
}
__device__ inline int a03(uint32_t b, uint32_t parity) {
  uint32_t done;
  asm("{ .reg .pred p;"  // PTX101@asm
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"  // PTX102@mbarrier.try_wait
      "selp.b32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(b), "r"(parity));
  return done;
}
__device__ inline uint32_t a04(uint32_t address) {
  uint32_t v;
  asm("ldmatrix.sync.aligned.x1.m8n8.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(address));  // PTX101@asm
  return v;
}
__device__ inline unsigned a06(unsigned x, unsigned y) {
  unsigned sum;
  asm("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));  // PTX101@asm
  return sum;
}
__device__ inline unsigned a07(unsigned x, unsigned y) {
  unsigned sum;
  asm("addc.cc.u32 %0, %1, %2; addc.u32 %0, %0, 0;" : "=&r"(sum) : "r"(x), "r"(y));  // PTX101@asm
  return sum;
}
__device__ inline int a05(int x) {
  int v;
  asm("shfl.sync.down.b32 %0, %1, 1, 0x1f, -1;" : "=r"(v) : "r"(x));  // PTX101@asm
  return v;
}

// -- PTX102: no memory clobber
__device__ inline void b01() { asm volatile("fence.acq_rel.gpu;"); }  // PTX102@fence.acq_rel
__device__ inline void b02(int id, int n) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n));  // PTX102@bar.sync
}
__device__ inline void b03(int* p, int v) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" : : "l"(p), "r"(v));  // PTX102@st.release
}
__device__ inline int b04(const int* p) {
  int v;
  asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(p));  // PTX102@ld.acquire
  return v;
}
__device__ inline void b05(uint32_t a, int v) {
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(a), "r"(v));  // PTX102@st.shared
}
__device__ inline void b06(int* p) { asm("red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(p)); }  // PTX102@red.relaxed
__device__ inline void b07() { asm volatile("griddepcontrol.wait;"); }  // PTX102@griddep
__device__ inline void b08() {
  asm volatile("{\n"
               "fence.proxy.async.shared::cta;"  // PTX102@fence.proxy
               "}");
}
__device__ inline void b09(uint32_t b) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) :);  // PTX102@mbarrier.init
}
__device__ inline void b10() { asm volatile("cp.async.bulk.wait_group 0;"); }  // PTX102@cp.async
__device__ inline void b11(void* d, uint32_t s) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group "  // PTX102@cp.async
      "[%0], [%1], 16;" ::"l"(d),
      "r"(s));
}
__device__ inline void b12() { asm volatile("barrier.cluster.arrive.aligned;\n" : :); }  // PTX102@barrier

// -- PTX103, PTX104, PTX105, PTX106
__device__ inline int c01(const int* p) {
  int v;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(p));  // PTX103@ld.global
  return v;
}
__device__ inline int c02(uint32_t a) {
  int v;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(a));  // PTX103@ld.shared
  return v;
}
__device__ inline long long c03() {
  long long t;
  asm("mov.u64 %0, %%clock64;" : "=l"(t));  // PTX104@asm
  return t;
}
__device__ inline unsigned c04() {
  unsigned t;
  asm("mov.u32 %0, %%globaltimer_lo;" : "=r"(t));  // PTX104@asm
  return t;
}

// -- PTX30x: constraints and operands
__device__ inline int d01(int j, int k) {
  int i;
  asm("add.s32 %0, %1, %2;" : "=r"(i) : "rf"(j), "r"(k));  // PTX301@"rf"
  return i;
}
__device__ inline int d02(int j) {
  int i;
  asm("neg.s32 %0, %1;" : "r"(i) : "r"(j));  // PTX301@"r"
  return i;
}
__device__ inline int d03(int j) {
  int i;
  asm("neg.s32 %0, %1;" : "=r"(i) : "=r"(j));  // PTX301@"=r"(j)
  return i;
}
__device__ inline long long d04(int j) {
  long long i;
  asm("add.s64 %0, %1, 1;" : "=l"(i) : "r"(j));  // PTX302@%1
  return i;
}
__device__ inline int d05(long long j) {
  int i;
  asm("mul.lo.s32 %0, %1, %1;" : "=r"(i) : "l"(j));  // PTX302@%1
  return i;
}
__device__ inline uint64_t d06(const uint64_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX302@%0
  return v;
}
__device__ inline uint32_t d07(uint64_t v) {
  uint32_t lo, hi;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(lo), "=h"(hi) : "l"(v));  // PTX302@%1
  asm volatile("st.v2.u32 [%0], {%1, %2};" ::"l"(v), "r"(lo), "l"(v) : "memory");  // PTX302@%2
  asm volatile("multimem.st.global.u32 [%0], %1;" ::"l"(v), "l"(v) : "memory");  // PTX302@%1
  return lo + hi;
}
__device__ inline int d08(int x) {
  int y;
  asm("setp.eq.s32 %0, %1, 34;" : "=r"(y) : "r"(x));  // PTX302@%0
  return y;
}
__device__ inline float d09(float x) {
  float y;
  asm("add.u32 %0, %1, 1;" : "=f"(y) : "f"(x));  // PTX303@%0 PTX303@%1
  return y;
}
__device__ inline void d10(int i, int j) { asm("add.s32 %0, %1, 1;" ::"r"(i), "r"(j)); }  // PTX304@%0
__device__ inline int d11(int j) {
  int i = 1;
  asm("add.s32 %0, %0, %1;" : "=r"(i) : "r"(j));  // PTX305@%0,·%1
  return i;
}
__device__ inline int d12(int j) {
  int i;
  asm("{ .reg .s32 t; add.s32 t, %1, %0; mov.s32 %0, t; }" : "=r"(i) : "r"(j));  // PTX305@%0;·mov
  return i;
}
__device__ inline void d13(int* p, int j) {
  asm volatile("st.relaxed.gpu.global.s32 [%1], %0;" : "=r"(j) : "l"(p) : "memory");  // PTX306@%0
}
__device__ inline int d14(int j) {
  int i, k;
  asm("mov.s32 %0, %2;" : "=r"(i), "=r"(k) : "r"(j));  // PTX306@"=r"(k)
  return i + k;
}
__device__ inline int d15(int x) {
  int y = 0;
  asm("{\n\t"
      ".reg .pred p;\n\t"
      "setp.eq.s32 p, %1, 34;\n\t"
      "@p mov.s32 %0, 1;\n\t"  // PTX307@%0
      "}"
      : "=r"(y)
      : "r"(x));
  return y;
}
__device__ inline int d16(int j, int k) {
  int i;
  asm("neg.s32 %0, %1;" : "=r"(i) : "r"(j), "r"(k));  // PTX308@"r"(k)
  return i;
}
__device__ inline void d17(int* p) {
  asm volatile("st.relaxed.gpu.s32 [%0], 1;" ::"r"((unsigned)(uintptr_t)p) : "memory");  // PTX309@%0
}
__device__ inline int d18(unsigned p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1+4];" : "=r"(v) : "r"(p) : "memory");  // PTX309@%1
  return v;
}
__device__ inline void d19(uint32_t dst, uint32_t src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst), "r"(src) : "memory");  // PTX309@%1
}
__device__ inline void d20(uint32_t b) {
  asm volatile("mbarrier.arrive.b64 _, [%0];" ::"r"(b) : "memory");  // PTX309@%0
}
__device__ inline void d21(int v, uint32_t a) {
  asm volatile("st.shared.f64 [%0], %1;" ::"r"(a), "f"((float)v) : "memory");  // PTX302@%1
}
__device__ inline void d22(unsigned* p) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], 4294967297;" ::"l"(p) : "memory");  // PTX310@4294967297
}
__device__ inline int d23(int v) {
  int r;
  asm("add.s32 %0, %1, 0x1ffffffff;" : "=r"(r) : "r"(v));  // PTX310@0x1ffffffff
  return r;
}
__device__ inline void d24() {
  asm volatile("bar.sync 1, 4294967328;" ::: "memory");  // PTX310@4294967328
}
__device__ inline void d25(unsigned char* p) {
  asm volatile("st.relaxed.gpu.global.u8 [%0], 256;" ::"l"(p) : "memory");  // PTX310@256
}
