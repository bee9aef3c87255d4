// enable=ALL arch=sm_80 isa=7.0
// Rules that are off, and those that need the version. `// ID@TEXT`: the rule ID reports this line at TEXT.
#include <cstdint>

__device__ inline void a01() { asm volatile("" ::: "memory"); }  // PTX106@asm
__device__ inline void a02(uint32_t d, const void* s) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(d), "l"(s));  // PTX105@cp.async
}
__device__ inline unsigned a03() {
  unsigned id;
  asm("mov.u32 %0, %laneid;" : "=r"(id));  // PTX206@%laneid
  return id;
}
__device__ inline int a04(int x) {
  int y;
  asm("neg.s32 %0, %[x];" : "=r"(y) : [x] "r"(x));  // PTX210@%[x]
  return y;
}
__device__ inline int a05(int* p) {
  int v;
  asm volatile("atom.acquire.global.add.s32 %0, [%1], 1;" : "=r"(v) : "l"(p) : "memory");  // PTX402@.acquire
  return v;
}
__device__ inline void a06(uint32_t b) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");  // PTX601@mbarrier
}
__device__ inline void a07() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }  // PTX601@fence PTX602@fence
__device__ inline void a08(uint32_t b) {
  // ptxmm: ignore[PTX601]
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b) : "memory");
}
__device__ inline void a09() { asm volatile("membar.gl;" ::: "memory"); }  // ptxmm: ignore
__device__ inline int a10(int x) {
  int y;
  asm("neg.s32 %0, %[z];" : "=r"(y) : [x] "r"(x));  // PTX203@%[z] PTX308@[x]·"r"
  return y;
}
