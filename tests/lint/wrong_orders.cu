// Faults of memory order and scope. `// ID@TEXT`: the rule ID reports this line at the first place of TEXT in it.
#include <cstdint>

// -- PTX401: no scope
__device__ inline int a01(const int* p) {
  int v;
  asm volatile("ld.acquire.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX401@ld.acquire
  return v;
}
__device__ inline void a02(int* p) {
  asm volatile("st.release.global.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX401@st.release
}
__device__ inline int a03(const int* p) {
  int v;
  asm volatile("{\n\t"
               "ld.relaxed.s32 %0, [%1];\n\t"  // PTX401@ld.relaxed
               "}"
               : "=r"(v)
               : "l"(p)
               : "memory");
  return v;
}
__device__ inline void a04() { asm volatile("fence.acq_rel;" ::: "memory"); }  // PTX401@fence.acq_rel
__device__ inline void a05() { asm volatile("fence.sc;" ::: "memory"); }       // PTX401@fence.sc

// -- PTX403, PTX404: old forms
__device__ inline void b01() { asm volatile("membar.gl;" ::: "memory"); }  // PTX403@membar.gl
__device__ inline void b02() { asm volatile("membar.sys;" ::: "memory"); }  // PTX403@membar.sys
__device__ inline int b03(const int* p) {
  int v;
  asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX404@.volatile
  return v;
}
__device__ inline void b04(int* p) {
  asm volatile("st.volatile.global.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX404@.volatile
}

// -- PTX405: cache operators
__device__ inline int c01(const int* p) {
  int v;
  asm volatile("ld.global.cv.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX405@.cv
  return v;
}
__device__ inline void c02(int* p) {
  asm volatile("st.global.wt.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX405@.wt
}
__device__ inline int load_acquire(const int* p) {
  int v;
  asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX405@.cg PTX502@ld.global
  return v;
}
__device__ inline void wait_flag(const int* p) {
  int v;
  do {
    asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX405@.cg
  } while (v == 0);
}
__device__ inline void c05(int* status, int* value, int v) {
  asm volatile(
      "st.global.cg.s32 [%1], %2;"  // PTX405@.cg
      "fence.acq_rel.gpu;"
      "st.global.cg.s32 [%0], 1;"  // PTX405@.cg
      ::"l"(status), "l"(value), "r"(v)
      : "memory");
}

// -- PTX406 to PTX408: weak accesses of flags
__device__ inline void d01(int* p, int v) {
  asm volatile("fence.acq_rel.gpu; st.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");  // PTX406@st.global
}
__device__ inline int d02(const int* p) {
  int v;
  asm volatile(
      "ld.global.s32 %0, [%1];\n"  // PTX406@ld.global
      "fence.acq_rel.gpu;"
      : "=r"(v)
      : "l"(p)
      : "memory");
  return v;
}
__device__ inline void d07(int* flag) {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("st.global.s32 [%0], 1;" ::"l"(flag) : "memory");  // PTX406@st.global
}
__device__ inline void unlock(int* p) {
  __threadfence();
  asm volatile("st.s32 [%0], 0;" ::"l"(p) : "memory");  // PTX406@st.s32
}
__device__ inline void d09(const int* ready) {
  int v;
  do {
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(ready + 1) : "memory");  // PTX406@ld.global
  } while (v == 0);
}
__device__ inline void d03(int* ready) {
  while (*ready == 0) {  // PTX407@ready
  }
}
__device__ inline void d04(const unsigned* slots, int i) {
  while (slots[i] != 3u)  // PTX407@slots
    ;
}
__device__ inline void d05(int* data, int* flag) {
  data[0] = 1;
  __threadfence();
  *flag = 1;  // PTX408@flag
}
__device__ inline void d06(int* done, int i) {
  __threadfence_system();
  done[i] = 1;  // PTX408@done
}

// -- PTX501, PTX502: names
__device__ inline int ld_acquire_gpu(const int* p) {
  int v;
  asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX501@.cta
  return v;
}
__device__ inline int ld_acquire_cta(const int* p) {
  int v;
  asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX501@.sys
  return v;
}
__device__ inline void st_release_system(int* p) {
  asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX501@.gpu
}
__device__ inline int gpu_load_acquire(const int* p) {
  int v;
  asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX501@.cta
  return v;
}
__device__ inline void memory_fence_block() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }  // PTX501@.sys
__device__ inline void memoryFenceDevice() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }  // PTX501@.cta
__device__ inline int load_acquire_gpu(const int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX502@.relaxed
  return v;
}
__device__ inline void st_release_cta(int* p) {
  asm volatile("st.relaxed.cta.s32 [%0], 1;" ::"l"(p) : "memory");  // PTX502@.relaxed
}
__device__ inline int atomic_add_relaxed(int* p) {
  int v;
  asm volatile("atom.add.acq_rel.gpu.s32 %0, [%1], 1;" : "=r"(v) : "l"(p) : "memory");  // PTX502@.acq_rel
  return v;
}
__device__ inline int ld_volatile(const int* p) {
  int v;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX502@ld.global
  return v;
}

// -- PTX602: conditions
#if __CUDA_ARCH__ >= 800
__device__ inline void e01(uint32_t b) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(b) : "memory");  // PTX602@mbarrier
}
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
__device__ inline void e02() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }  // PTX602@fence
#endif

// -- PTX70x
__device__ inline void f01(uint32_t b, uint32_t parity) {
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; }"  // PTX701@mbarrier
               ::"r"(b), "r"(parity)
               : "memory");
}
__device__ inline void f02(void* d, uint32_t s, int v) {
  asm volatile(
      "st.shared.s32 [%1], %2;\n\t"
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;"  // PTX702@cp.async
      ::"l"(d), "r"(s), "r"(v)
      : "memory");
}
__device__ inline void f03(uint32_t d, const void* s) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 4;\n\t"
      "cp.async.wait_group 0;\n\t"  // PTX703@cp.async
      "cp.async.commit_group;"
      ::"r"(d), "l"(s)
      : "memory");
}
__device__ inline void f04(void* d, uint32_t s, int* flag) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n\t"
      "cp.async.bulk.commit_group;\n\t"
      "cp.async.bulk.wait_group.read 0;\n\t"  // PTX704@.read
      "st.release.gpu.global.s32 [%2], 1;"
      ::"l"(d), "r"(s), "l"(flag)
      : "memory");
}
__device__ inline int f05(int* p) {
  int v;
  asm volatile(
      "st.global.s32 [%1], 1;\n\t"
      "ld.global.nc.s32 %0, [%1];"  // PTX705@.nc
      : "=r"(v)
      : "l"(p)
      : "memory");
  return v;
}
// A wait orders what comes after it only where it returned true.
__device__ inline int f20(uint32_t b, uint32_t parity, uint32_t d) {
  int v;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "ld.shared.s32 %0, [%3]; }"  // PTX707@ld.shared
      : "=r"(v)
      : "r"(b), "r"(parity), "r"(d)
      : "memory");
  return v;
}
__device__ inline void f21(uint32_t b, uint64_t state, int* d, uint32_t s, uint32_t* done) {
  asm volatile(
      "{ .reg .pred p; .reg .b32 r;\n\t"
      "mbarrier.test_wait.acquire.cta.shared::cta.b64 p, [%0], %1;\n\t"
      "selp.b32 r, 1, 0, p;\n\t"
      "@p st.shared.s32 [%3], 1;\n\t"
      "atom.relaxed.gpu.global.add.s32 r, [%2], 1;\n\t"  // PTX707@atom
      "st.global.u32 [%4], r; }"
      ::"r"(b), "l"(state), "l"(d), "r"(s), "l"(done)
      : "memory");
}

__global__ void f06(int* p) {
  if (threadIdx.x == 0) {
    *p = 1;
    __syncthreads();  // PTX706@__syncthreads
  }
}

__global__ void f07(int* p) {
  if (threadIdx.x == 0) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");  // PTX706@"wgmma.fence.sync.aligned;"
  }
}
__global__ void f08(int* p) {
  if (threadIdx.x == 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // PTX706@"bar.sync 1, 64;"
  }
}
__global__ void f09(int* p) {
  if (threadIdx.x == 0) {
    asm volatile("barrier.sync 1, 64;" ::: "memory");
  }
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// -- PTX80x
__device__ inline int g01(const int* p) {
  int v;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // PTX801@%1
  return v;
}
__device__ inline int g02(const int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_shared(p)) : "memory");  // PTX802@%1
  return v;
}
__device__ inline void g03(float x) {
  __shared__ float tile[32];
  asm volatile("st.shared.f32 [%0], %1;" ::"l"(&tile[threadIdx.x]), "f"(x) : "memory");  // PTX801@%0
}
