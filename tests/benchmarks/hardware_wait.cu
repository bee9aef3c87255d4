// Message passing through an mbarrier and nothing else: one test, no stress, nothing of ptxmm.
//
// nvcc -arch=sm_90 -O3 -std=c++17 -DFORM=STRAIGHT -DWAIT='"try_wait"' -DORDER='"acquire.cta"' -o wait hardware_wait.cu && ./wait
//
// One warp of a CTA stores 1 and arrives; the other waits once and accesses what was stored (FORM STORE: it stores, and
// the first one loads before it arrives). It prints how often the wait returned true, and how often then the access had
// passed it: the load has the value from before, the store was seen by what is ordered before the wait.

#include <cstdint>
#include <cstdio>

#define STRAIGHT 1
#define RELAXED_LOAD 2
#define ATOM 3
#define STORE 4
#define GUARDED 5
#define BRANCH 6
#define LOOP 7
#define FENCE 8

#define WAITS "mbarrier." WAIT ".parity." ORDER ".shared::cta.b64 p, [%2], 0;\n\t"
#define LOADS "ld.shared.u32 %1, [%3];\n\t"
#if FORM == STRAIGHT
#define CONSUMER WAITS LOADS
#elif FORM == RELAXED_LOAD
#define CONSUMER WAITS "ld.relaxed.cta.shared.u32 %1, [%3];\n\t"
#elif FORM == ATOM
#define CONSUMER WAITS "atom.relaxed.cta.shared.add.u32 %1, [%3], 0;\n\t"
#elif FORM == STORE
#define CONSUMER WAITS "st.shared.u32 [%3], 1;\n\t"
#elif FORM == GUARDED
#define CONSUMER WAITS "@p " LOADS
#elif FORM == BRANCH
#define CONSUMER WAITS "@!p bra END;\n\t" LOADS "END:\n\t"
#elif FORM == LOOP
#define CONSUMER "AGAIN:\n\t" WAITS "@!p bra AGAIN;\n\t" LOADS
#elif FORM == FENCE
#define CONSUMER WAITS "fence.acq_rel.cta;\n\t" LOADS
#endif

struct Counts { unsigned long long instances, waited, passed; };

__device__ uint32_t address(const void* at) { return (uint32_t)__cvta_generic_to_shared(at); }

extern __shared__ uint32_t memory[];

__global__ void play(Counts* counts, uint32_t rounds) {
  uint32_t *data = memory, *loaded = memory + rounds * 96, lane = threadIdx.x % 32;
  uint64_t* barrier = (uint64_t*)(memory + rounds * 32);
  for (uint32_t i = threadIdx.x; i < rounds * 32; i += blockDim.x) {
    data[i] = 0;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(barrier + i)) : "memory");
  }
  unsigned waited = 0, passed = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t s = address(data + round * 32 + lane), b = address(barrier + round * 32 + lane), value = 0, done = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
#if FORM == STORE
      asm volatile("ld.shared.u32 %0, [%1];\n\tmbarrier.arrive.release.cta.shared::cta.b64 _, [%2];"
                   : "=r"(value) : "r"(s), "r"(b) : "memory");
      loaded[lane] = value;
#else
      asm volatile("st.shared.u32 [%0], 1;\n\tmbarrier.arrive.release.cta.shared::cta.b64 _, [%1];" ::"r"(s), "r"(b) : "memory");
#endif
    } else {
      asm volatile("{\n\t.reg .pred p;\n\t" CONSUMER "selp.u32 %0, 1, 0, p;\n\t}" : "=&r"(done), "+r"(value) : "r"(b), "r"(s) : "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 32) {
      if (FORM == LOOP) done = 1;
      waited += done;
      passed += done && (FORM == STORE ? loaded[lane] == 1 : value == 0);
    }
  }
  if (threadIdx.x >= 32) {
    atomicAdd(&counts->instances, rounds);
    atomicAdd(&counts->waited, waited);
    atomicAdd(&counts->passed, passed);
  }
}

int main() {
  const uint32_t rounds = 60;
  for (int ctas : {1, 1056})
    for (int threads : {33, 64}) {
      Counts *device, found;
      cudaMalloc(&device, sizeof found);
      cudaMemset(device, 0, sizeof found);
      for (int n = 0; n < 3000; n++) play<<<ctas, threads, rounds * 384 + 128>>>(device, rounds);
      cudaError_t error = cudaMemcpy(&found, device, sizeof found, cudaMemcpyDeviceToHost);
      if (error != cudaSuccess) return printf("%s\n", cudaGetErrorString(error)), 1;
      printf("%d CTAs, %d lanes: %llu instances, the wait returned true in %llu, the access passed it in %llu\n", ctas,
             threads - 32, found.instances, found.waited, found.passed);
    }
  return 0;
}
