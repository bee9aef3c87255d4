// Synchronization idioms of public kernels, written rightly: none of these may be reported.
#include <cstdint>

// -- loads and stores with a memory order
__device__ __forceinline__ int ld_acquire_sys(const int* ptr) {
  int value;
  asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(ptr) : "memory");
  return value;
}

__device__ __forceinline__ uint64_t ld_acquire_sys_global(const uint64_t* ptr) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(ptr) : "memory");
  return value;
}

__device__ __forceinline__ void st_release_sys_global(int* ptr, int value) {
  asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(ptr), "r"(value) : "memory");
}

__device__ __forceinline__ void st_release_cta(int* ptr, int value) {
  asm volatile("st.release.cta.s32 [%0], %1;" ::"l"(ptr), "r"(value) : "memory");
}

__device__ __forceinline__ int atomic_add_release_global(int* ptr, int value) {
  int before;
  asm volatile("atom.add.release.gpu.global.s32 %0, [%1], %2;" : "=r"(before) : "l"(ptr), "r"(value) : "memory");
  return before;
}

__device__ __forceinline__ void red_add_release_sys(int* ptr, int value) {
  asm volatile("red.release.sys.global.add.s32 [%0], %1;" ::"l"(ptr), "r"(value) : "memory");
}

__device__ __forceinline__ int ld_volatile_global(const int* ptr) {
  int value;
  asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(value) : "l"(ptr) : "memory");
  return value;
}

__device__ __forceinline__ unsigned ld_relaxed_gpu(const unsigned* ptr) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(ptr) : "memory");
  return value;
}

// A relaxed load and a fence together are an acquire.
__device__ __forceinline__ unsigned load_acquire_device(const unsigned* ptr) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(ptr) : "memory");
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  return value;
}

__device__ __forceinline__ void store_release_device(unsigned* ptr, unsigned value) {
  asm volatile(
      "fence.acq_rel.gpu;\n\t"
      "st.relaxed.gpu.global.u32 [%0], %1;"
      :
      : "l"(ptr), "r"(value)
      : "memory");
}

// Without volatile, but with a memory clobber: it is not deleted either.
template <typename = void>
__device__ static inline unsigned exchange(unsigned* ptr, unsigned value) {
  unsigned before;
  asm("atom.exch.relaxed.gpu.global.b32 %0, [%1], %2;" : "=r"(before) : "l"(ptr), "r"(value) : "memory");
  return before;
}

// -- fences
__device__ inline void memory_fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ inline void memory_fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
__device__ inline void memory_fence_cta() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
__device__ inline void fence_sc_system() { asm volatile("fence.sc.sys;" : : : "memory"); }
__device__ inline void thread_fence_block() { __asm__ __volatile__("fence.acq_rel.cta;" : : : "memory"); }
__device__ inline void my_threadfence() { asm volatile("membar.gl;" ::: "memory"); }
__device__ inline void fence_view_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void tensormap_release() {
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 700)
__device__ inline int legacy_flag(const int* ptr) {
  int value;
  asm volatile("ld.volatile.global.s32 %0, [%1]; membar.gl;" : "=r"(value) : "l"(ptr) : "memory");
  return value;
}
#else
__device__ inline int legacy_flag(const int* ptr) { return ld_acquire_sys(ptr); }
#endif

// -- barriers
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
template <int Id, int Threads>
__device__ inline void constant_barrier() {
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "n"(Threads) : "memory");
}
__device__ inline void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory"); }
__device__ inline bool any_in_barrier(bool p) {
  int found;
  asm volatile(
      "{\n\t.reg .pred p, q;\n\t"
      "setp.ne.s32 p, %1, 0;\n\t"
      "barrier.cta.red.or.pred q, 0, p;\n\t"
      "selp.s32 %0, 1, 0, q;\n\t}"
      : "=r"(found)
      : "r"((int)p)
      : "memory");
  return found;
}

// -- spinning
__device__ inline void wait_for(const int* flag, int value) {
  int seen;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (seen != value);
}

__device__ inline void lock(int* mutex) {
  int before = 1;
  while (before != 0) {
    asm volatile("atom.cas.acquire.gpu.global.b32 %0, [%1], 0, 1;" : "=r"(before) : "l"(mutex) : "memory");
  }
}
__device__ inline void unlock(int* mutex) {
  asm volatile("st.release.gpu.global.s32 [%0], 0;" ::"l"(mutex) : "memory");
}

__device__ inline void plain_wait(volatile int* flag) {
  while (*flag == 0)
    ;
  __threadfence();
}
__device__ inline void publish(int* data, volatile int* flag) {
  data[0] = 7;
  __threadfence();
  *flag = 1;
}
__device__ inline void counter(int* data, int* total) {
  __threadfence();
  data[threadIdx.x] = 1;
  int steps = 0;
  while (steps < 4) {
    steps++;
  }
  *total = steps;
}

__device__ inline void consume(const int* flag, int* out) {
  int seen;
  do {
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (seen == 0);
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("st.global.s32 [%0], %1;" ::"l"(out), "r"(seen) : "memory");
}
__device__ inline void consume_at_once(const int* flag, int* out, int* seen) {
  asm volatile(
      "ld.relaxed.gpu.global.s32 %0, [%1];\n\t"
      "fence.acq_rel.gpu;\n\t"
      "st.global.s32 [%2], 1;"
      : "=r"(*seen)
      : "l"(flag), "l"(out)
      : "memory");
}
__device__ inline int sum(const int* data, int n) {
  int total = 0;
  for (int i = 0; i < n; i++) {
    int v;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(data + i) : "memory");
    total += v;
  }
  return total;
}
__global__ void first_thread(int* p) {
  if (threadIdx.x == 0) {
    *p = 1;
  }
  __syncthreads();
  if (blockIdx.x == 0) {
    __syncthreads();
  }
}

// -- mbarrier
__device__ inline void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ inline void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\n"
      "bra LAB_WAIT;\n"
      "DONE:\n"
      "}"
      :
      : "r"(barrier), "r"(parity)
      : "memory");
}
__device__ inline bool mbarrier_try_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      R"ptx({
        .reg .pred p;
        mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;
        selp.b32 %0, 1, 0, p;
      })ptx"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done;
}
__device__ inline uint64_t mbarrier_arrive(uint32_t barrier) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
  return state;
}
__device__ inline void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void mbarrier_arrive_remote(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n\t"
      ".reg .b32 remote;\n\t"
      "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t"
      "}"
      :
      : "r"(barrier), "r"(rank)
      : "memory");
}
__device__ inline void wait_unique(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again_%=:\n"
      " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1, %2;\n"
      " @!done bra again_%=; }"
      :
      : "r"(barrier), "r"(parity), "r"(0x989680)
      : "memory");
}

// -- accesses after a wait that returned true, that a fence keeps, or that nothing needs to keep
__device__ inline int read_if_complete(uint32_t barrier, uint32_t parity, uint32_t data) {
  int value;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "mov.s32 %0, 0;\n\t"
      "@p ld.shared.s32 %0, [%3]; }"
      : "=&r"(value)
      : "r"(barrier), "r"(parity), "r"(data)
      : "memory");
  return value;
}
__device__ inline int wait_and_read(uint32_t barrier, uint32_t parity, uint32_t data) {
  int value;
  asm volatile(
      "{ .reg .pred p;\n"
      "again_%=:\n\t"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "@!p bra again_%=;\n\t"
      "ld.shared.s32 %0, [%3]; }"
      : "=r"(value)
      : "r"(barrier), "r"(parity), "r"(data)
      : "memory");
  return value;
}
__device__ inline uint32_t read_and_tell(uint32_t barrier, uint32_t parity, uint32_t data, int& value) {
  uint32_t complete;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%2], %3;\n\t"
      "fence.acq_rel.cta;\n\t"
      "ld.shared.s32 %1, [%4];\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=&r"(complete), "=&r"(value)
      : "r"(barrier), "r"(parity), "r"(data)
      : "memory");
  return complete;
}
__device__ inline uint32_t read_of_cluster(uint32_t barrier, uint32_t parity, uint32_t data, int& value) {
  uint32_t complete;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%2], %3;\n\t"
      "ld.shared.s32 %1, [%4];\n\t"
      "selp.b32 %0, 1, 0, p; }"
      : "=&r"(complete), "=&r"(value)
      : "r"(barrier), "r"(parity), "r"(data)
      : "memory");
  return complete;
}

// -- arrivals that order nothing, names with the prefix of a library
__device__ inline void cluster_arrive_only() { asm volatile("barrier.cluster.arrive.relaxed.aligned;"); }
__device__ inline void expect_more(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes));
}
__device__ inline void xyz_gpu_dev_net_store_release(int* p) {
  asm volatile("st.release.sys.global.s32 [%0], 1;" ::"l"(p) : "memory");
}

// -- grid dependency, clocks, names of registers
__device__ inline void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ inline void grid_launch() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ inline unsigned lane() {
  unsigned id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}
__device__ inline unsigned sm() {
  unsigned id;
  asm volatile("mov.u32 %0, %smid;" : "=r"(id));
  return id;
}
__device__ inline long long now() {
  long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}
__device__ inline void pause() { asm volatile("nanosleep.u32 %0;" ::"r"(64)); }
__device__ inline void stop() { asm("trap;"); }
__device__ inline void leave() { asm volatile("exit;"); }
__device__ inline void keep(int& x) { asm volatile("" : "+r"(x)::"memory"); }
__device__ inline void nothing_moves() { asm volatile("" ::: "memory"); }
