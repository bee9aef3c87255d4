// Data movement, arithmetic and shapes of asm statements, written rightly: none of these may be reported.
#include <cstdint>

__device__ inline uint32_t smem_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ inline uint32_t smem_address_ptx(const void* pointer) {
  uint32_t address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }" : "=r"(address) : "l"(pointer));
  return address;
}

// -- loads and stores
__device__ inline int4 load_nc(const int4* p) {
  int4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
__device__ inline float load_read_only(const float* p) {
  float v;
  asm("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}
__device__ inline void store_streaming(int4* p, int4 v) {
  asm volatile("st.global.cs.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ inline int __my_ldcg(const int* p) {
  int v;
  asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline int read_once(const int* p) {
  int v;
  asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline unsigned char byte_of(const unsigned char* p) {
  int v;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void store_half(uint32_t address, unsigned short v) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(v) : "memory");
}
__device__ inline uint4 load_shared(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4 + 16];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ inline void predicated_load(uint4& d, const void* p, bool guard) {
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  setp.ne.b32 p, %5, 0;\n"
      "  mov.b32 %0, %6;\n"
      "  mov.b32 %1, %7;\n"
      "  mov.b32 %2, %8;\n"
      "  mov.b32 %3, %9;\n"
      "  @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
      "}\n"
      : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
      : "l"(p), "r"((int)guard), "r"(d.x), "r"(d.y), "r"(d.z), "r"(d.w)
      : "memory");
}
__device__ inline int conditional(int x) {
  int y = 0;
  asm("{\n\t"
      ".reg .pred %p;\n\t"
      "setp.eq.s32 %p, %1, 34;\n\t"  // x == 34?
      "@%p mov.s32 %0, 1;\n\t"       // set y to 1 if true
      "}\n\t"
      : "+r"(y)
      : "r"(x));
  return y;
}
__device__ inline int either(int x) {
  int y;
  asm("{ .reg .pred p; setp.gt.s32 p, %1, 0; @p mov.s32 %0, 1; @!p mov.s32 %0, -1; }" : "=r"(y) : "r"(x));
  return y;
}
__device__ inline int vector_of_one(int* p) {
  int v;
  asm volatile("ld.global.s32 {%0}, [%1]; st.global.s32 [%1+4], {%0};" : "=&r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void thread_of(unsigned& x, unsigned& y) {
  asm("mov.v4.u32 {%0, %1, _, _}, %%tid;" : "=r"(x), "=r"(y));
}
__device__ inline uint64_t through_128_bits(uint64_t low, uint64_t high) {
  uint64_t v;
  asm("{ .reg .b128 a, b;\n mov.b128 a, {%1, %2};\n mov.b128 b, a;\n mov.b128 {%0, _}, b; }"
      : "=l"(v)
      : "l"(low), "l"(high));
  return v;
}
#if __CUDA_ARCH__ >= 1000
__device__ inline void read_only_32_bytes(const void* p, uint32_t (&v)[8], uint64_t (&w)[4]) {
  asm("ld.global.nc.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
      : "l"(p));
  asm("ld.global.nc.v4.b64 {%0, %1, %2, %3}, [%4];" : "=l"(w[0]), "=l"(w[1]), "=l"(w[2]), "=l"(w[3]) : "l"(p));
}
__device__ inline float greatest(float a, float b, float c) {
  asm("max.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(b), "f"(c));
  return a;
}
__device__ inline uint32_t sum_of_replicas(const void* p) {
  uint32_t v;
  asm volatile("multimem.ld_reduce.global.add.acc::f16.e4m3x4 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline uint32_t next_cta(uint32_t answer) {
  uint32_t x = 0;
  asm volatile(
      "{ .reg .pred given;\n .reg .b128 response;\n"
      " ld.shared.b128 response, [%1];\n"
      " clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 given, response;\n"
      " @given clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, response; }"
      : "=r"(x)
      : "r"(answer)
      : "memory");
  return x;
}
#endif

// -- asynchronous copies
__device__ inline void cp_async(uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(16));
}
template <int Bytes>
__device__ inline void cp_async_fill(uint32_t dst, const void* src, bool valid) {
  int size = valid ? Bytes : 0;
  asm volatile(
#if ENABLE_L2_PREFETCH
      "cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;\n" ::"r"(dst),
#else
      "cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(dst),
#endif
      "l"(src), "n"(Bytes), "r"(size));
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::); }
template <int N>
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N));
}
__device__ inline void bulk_load(uint32_t dst, const void* src, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ inline void tensor_load(uint32_t dst, const void* map, uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];"
      :
      : "r"(dst), "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ inline void bulk_store(void* dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src), "r"(bytes)
               : "memory");
}
__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;"); }
template <int N>
__device__ inline void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ inline void store_and_send(void* dst, uint32_t src, int value) {
  asm volatile(
      "st.shared.s32 [%1], %2;\n\t"
      "fence.proxy.async.shared::cta;\n\t"
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n\t"
      "cp.async.bulk.commit_group;\n\t"
      "cp.async.bulk.wait_group 0;"
      :
      : "l"(dst), "r"(src), "r"(value)
      : "memory");
}
__device__ inline void prefetch(const void* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }
__device__ inline void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// -- matrices
__device__ inline void ldmatrix(uint32_t& a, uint32_t& b, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];\n" : "=r"(a), "=r"(b) : "r"(address));
}
__device__ inline void mma(float& d0, float& d1, float& d2, float& d3, uint32_t a0, uint32_t a1, uint32_t b0) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,  %1,  %2,  %3},"
      "{%4,  %5,  %4,  %5},"
      "{%6,  %6},"
      "{%0,  %1,  %2,  %3};\n"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a0), "r"(a1), "r"(b0));
}
__device__ inline void warpgroup_arrive() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ inline void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
__device__ inline void warpgroup_keep(float& x) { asm volatile("" : "+f"(x)::"memory"); }

// -- arithmetic, conversions, exchanges
__device__ inline int add(int a, int b) {
  int c;
  asm("add.s32 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ inline int cube(int x) {
  int y;
  asm("{\n\t"
      " .reg .u32 t1;\n\t"            // temp reg t1
      " mul.lo.u32 t1, %1, %1;\n\t"   // t1 = x * x
      " mul.lo.u32 %0, t1, %1;\n\t"   // y = t1 * x
      "}"
      : "=r"(y)
      : "r"(x));
  return y;
}
__device__ inline float fused(float a, float b) {
  asm("fma.rn.f32 %0, %0, %1, %0;" : "+f"(a) : "f"(b));
  return a;
}
__device__ inline float from_long(long long y) {
  float x;
  asm("cvt.rn.f32.s64 %0, %1;" : "=f"(x) : "l"(y));
  return x;
}
__device__ inline uint64_t pack(uint32_t low, uint32_t high) {
  uint64_t both;
  asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(low), "r"(high));
  return both;
}
__device__ inline uint32_t half_pair(float a, float b) {
  uint32_t r;
  asm("{.reg .f16 low, high;\n cvt.rn.f16.f32 low, %1;\n cvt.rn.f16.f32 high, %2;\n mov.b32 %0, {low, high};}"
      : "=r"(r)
      : "f"(a), "f"(b));
  return r;
}
__device__ inline uint32_t bits_of(float x) {
  uint32_t r;
  asm("mov.b32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
__device__ inline void add_64(uint32_t (&sum)[2], uint32_t (&more)[2]) {
  asm volatile("add.cc.u32 %0, %0, %1;" : "+r"(sum[0]) : "r"(more[0]));
  asm volatile("addc.u32 %0, %0, %1;" : "+r"(sum[1]) : "r"(more[1]));
}
__device__ inline uint32_t carry_of(uint32_t a, uint32_t b) {
  uint32_t carry;
  asm("{ .reg .u32 t;\n add.cc.u32 t, %1, %2;\n addc.u32 %0, 0, 0; }" : "=r"(carry) : "r"(a), "r"(b));
  return carry;
}
__device__ inline bool elect_once() {  // the same lane every time: PTX ISA 9.7.14.14
  uint32_t chosen;
  asm("{ .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen;
}
__device__ inline int numbered_register(int x) {
  int y;
  asm(".reg .s32 twice_%=; add.s32 twice_%=, %1, %1; mov.s32 %0, twice_%=;" : "=r"(y) : "r"(x));
  return y;
}
__device__ inline bool elect() {
  uint32_t chosen;
  asm volatile(
      "{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(chosen));
  return chosen;
}
__device__ inline int shuffle(int v, int lane) {
  int r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
  return r;
}
struct rounding_up {
  static constexpr const char mode[] = ".rp";
};
__device__ inline float rounded(float a, float b) {
  float r;
  asm("add%1.f32 %0, %2, %3;" : "=f"(r) : "C"(rounding_up::mode), "f"(a), "f"(b));
  return r;
}
__device__ inline unsigned long long policy() {
  unsigned long long p;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
  return p;
}

// -- shapes of statements
#define BARRIER(id) asm volatile("bar.sync " #id ";" ::: "memory")
#define LOAD(TYPE, NAME, LETTER)                                                              \
  __device__ inline TYPE NAME(const TYPE* p) {                                                \
    TYPE v;                                                                                   \
    asm volatile("ld.global.relaxed.gpu.b32 %0, [%1];" : "=" LETTER(v) : "l"(p) : "memory");  \
    return v;                                                                                 \
  }
LOAD(int, load_int, "r")
#define FENCE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
/* asm("ld.acquire.u32 %0, [%1];" : "=r"(x) : "r"(y)); in a comment */
static const char* text = "asm volatile(\"membar.gl;\");";
static const char* raw = R"(asm("st.u32 [%0], 1;" :: "r"(p));)";
constexpr int million = 1'000'000;
constexpr char quote = '"', other = '\'';
inline void host_pause() { __asm__ __volatile__("pause" ::: "memory"); }
inline unsigned long long host_clock() {
  unsigned low, high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
  return (unsigned long long)high << 32 | low;
}
extern "C" int renamed(int) asm("other_name");
__device__ inline void concatenated(int* p) {
  asm volatile("st.rel"  // half a word
               /* and the rest */ "axed.gpu.global.s32 "
               u8"[%0], 1;" ::"l"(p)
               : "memory");
}
__device__ inline int in_lambda(const int* p) {
  auto load = [&](int i) {
    int v;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p + i) : "memory");
    return v;
  };
  return load(0) + load(1);
}
__device__ inline void constants(unsigned* p, unsigned char* c, uint64_t* q) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], 0xFFFFFFFF;" ::"l"(p) : "memory");
  asm volatile("st.relaxed.gpu.global.u32 [%0], -2147483648;" ::"l"(p) : "memory");
  asm volatile("st.relaxed.gpu.global.s32 [%0], 0x80000000;" ::"l"(p) : "memory");
  asm volatile("st.relaxed.gpu.global.u8 [%0], 255;" ::"l"(c) : "memory");
  asm volatile("st.relaxed.gpu.global.b64 [%0], 0xFFFFFFFFFFFFFFFF;" ::"l"(q) : "memory");
}
