// Runs litmus tests on NVIDIA GPUs: many instances of a test at a time, and a histogram of how they end.
//
// A warp plays one thread of a test for 32 instances, a lane each; where the test has threads of one warp, those of
// fewer instances, in neighbouring lanes. The warps that play the threads of the same instances are a team: in one CTA,
// in CTAs of one cluster, in different clusters, on different GPUs or in grids one after the other, as the test says. All CTAs are resident at once, and go through many rounds in a launch, each on memory of its own, so that
// nothing is reset between them. What a launch looks like (CTAs, warps, strides, who plays with whom, delays, stress) is
// drawn anew for each from the seed. Afterwards another kernel reads the registers and the memory of every instance.

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace ptxmm {

constexpr int MOST_PLACES = 12;     // objects of a test
constexpr int MOST_VALUES = 24;     // registers and elements of memory that are looked at
constexpr int MOST_ROLES = 8;       // threads of a test
constexpr int MOST_ACCESSES = 96;   // addresses that are opaque to the compiler
constexpr int MOST_INITIAL = 32;    // initial values that are not 0
constexpr int MOST_DEVICES = 8;
constexpr int TABLE = 1024;         // different outcomes that are told apart
constexpr int LOCAL_TABLE = 256;
constexpr uint32_t INCOMPLETE = 1;  // in a tag: a loop was given up
constexpr long long LATEST = 1ll << 28;  // clocks that the grids of several GPUs wait for each other

// An object of a test. Shared ones lie at `offset` of the memory of an instance in the CTA that they belong to.
struct Place {
  uint32_t size, alignment, aliases;
  bool shared;
  uint32_t offset;
  int device, unit, rank;
};

// An initial value that is not 0, or (kind 1) an mbarrier with `value` arrivals and `tx` bytes pending.
struct Initial {
  uint32_t place, offset, size, kind;
  uint64_t value, tx;
};

// A value that is looked at: a register (place < 0), or an element of memory.
struct Value {
  int place;
  uint32_t offset, size;
};

// What a test is, apart from the code of its threads.
struct Meta {
  const char* name;
  int roles, devices, units, ranks, seats, lanes, places, values, initials, barriers;
  bool cluster_barrier, fixed_ranks, drain, grids;
  uint32_t shared_bytes;
  Place place[MOST_PLACES];
  Value value[MOST_VALUES];
  Initial initial[MOST_INITIAL];
  int device[MOST_ROLES], unit[MOST_ROLES], rank[MOST_ROLES], seat[MOST_ROLES];
};

// What a launch is; `zero` is always 0, which the compiler does not know.
struct Launch {
  uint8_t* memory[MOST_PLACES > 4 ? 4 : MOST_PLACES];
  uint64_t base[MOST_PLACES], pitch[MOST_PLACES], cell[MOST_PLACES];
  uint32_t multiplier[MOST_PLACES], addend[MOST_PLACES];
  uint64_t* log;
  uint32_t* tags;
  uint32_t* counters;
  uint64_t* where;
  uint32_t* scratch;
  uint32_t* meeting;  // how many CTAs of several GPUs have started, and how many waited in vain for the others
  uint32_t scratch_words, ctas;  // ctas: of all GPUs; 0 where one GPU plays
  uint32_t instances, rounds, teams, groups, clusters, cluster_multiplier, cluster_addend;
  uint32_t turn_unit, turn_rank, turn_seat;
  uint32_t align, meet, polls, delay, prefetch, stress, stress_line, tag, seed, padding;
  int device;
  uint64_t zero[MOST_ACCESSES];
};

__host__ __device__ inline uint32_t mix(uint64_t x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ull; x ^= x >> 33;
  return (uint32_t)x;
}

// Where the memory of an instance lies: a permutation of the instances of a round for each place.
__host__ __device__ inline uint32_t slot_of(uint32_t instance, uint32_t multiplier, uint32_t addend, uint32_t instances) {
  return (uint32_t)(((uint64_t)instance * multiplier + addend) % instances);
}

// The bytes of a place of an instance in a round, from the start of the memory.
__host__ __device__ inline uint64_t bytes_at(const Launch& p, int place, uint32_t round, uint32_t slot) {
  return p.base[place] + ((uint64_t)round * p.instances + slot) * p.pitch[place];
}

// Which group, and which part of it, a cluster plays in; group >= groups: none.
__host__ __device__ inline void spot_of(const Launch& p, uint32_t cluster, int units, uint32_t& group, uint32_t& unit) {
  uint32_t spot = (uint32_t)(((uint64_t)cluster * p.cluster_multiplier + p.cluster_addend) % p.clusters);
  group = spot / units; unit = spot % units;
}

// Which of `count` parts is played in a round by the one with this number.
__host__ __device__ inline uint32_t turned(uint32_t number, uint32_t round, uint32_t turn, uint32_t count) {
  return (number + (uint64_t)round * (turn >> 16) + (turn & 0xffff)) % count;
}

#ifdef __CUDACC__

__device__ inline uint32_t special_smid() { uint32_t v; asm volatile("mov.u32 %0, %%smid;" : "=r"(v)); return v; }
__device__ inline uint32_t special_ctaid() { uint32_t v; asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(v)); return v; }
__device__ inline uint32_t special_cluster() { uint32_t v; asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(v)); return v; }
__device__ inline uint32_t special_rank() { uint32_t v; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(v)); return v; }

// The number of this GPU, which each has in its own memory.
__device__ uint32_t gpu_number;

// Where a role ran: multiprocessor (12 bits), CTA (16), cluster (16), warp (8), launch (4), GPU (4).
__device__ inline uint64_t place_of(uint32_t sm, uint32_t cta, uint32_t cluster, uint32_t warp, int launch, uint32_t gpu) {
  return sm | (uint64_t)cta << 12 | (uint64_t)cluster << 28 | (uint64_t)warp << 44 | (uint64_t)launch << 52 | (uint64_t)gpu << 56;
}

extern __shared__ __align__(128) uint8_t shared_memory[];

// One instance of a test, seen from the thread that plays one role of it.
template <class T> struct Instance {
  const Launch& p;
  uint32_t round, lane, team, group, instance, rank;  // lane: where threads share a warp, that of all of an instance
  uint32_t slot[T::PLACES > 0 ? T::PLACES : 1];

  __device__ uint64_t index() const { return (uint64_t)round * p.instances + instance; }

  // The address of a place in global memory; `alias`: through which mapping of it.
  __device__ uint64_t global(int place, int alias, int access) const {
    return (uint64_t)p.memory[alias] + bytes_at(p, place, round, slot[place]) + p.zero[access];
  }

  __device__ uint32_t shared_at(uint32_t offset) const {
    uint32_t start = (uint32_t)__cvta_generic_to_shared(shared_memory);
    return start + ((round * p.teams + team) * 32 + lane) * (T::SHARED_BYTES + p.padding) + offset;
  }

  // The hardware rank of the CTA that plays the CTA with this rank of the test.
  __device__ uint32_t rank_of(uint32_t wanted) const {
    uint32_t turn = turned(0, round, p.turn_rank, T::RANKS);
    return (wanted + T::RANKS - turn) % T::RANKS;
  }

  // The addresses of shared memory: in the window of this CTA, in that of the cluster, and generic ones.
  __device__ uint64_t shared(uint32_t offset, int access) const { return shared_at(offset) + p.zero[access]; }
  __device__ uint64_t remote(uint32_t offset, uint32_t wanted, int access) const {
    uint32_t address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_at(offset)), "r"(rank_of(wanted)));
    return address + p.zero[access];
  }
  __device__ uint64_t generic(uint32_t offset, int access) const {
    return (uint64_t)__cvta_shared_to_generic(shared_at(offset)) + p.zero[access];
  }
  __device__ uint64_t remote_generic(uint32_t offset, uint32_t wanted, int access) const {
    uint64_t address, own = (uint64_t)__cvta_shared_to_generic(shared_at(offset));
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(own), "r"(rank_of(wanted)));
    return address + p.zero[access];
  }
  __device__ uint64_t constant(uint64_t value, int access) const { return value + p.zero[access]; }

  // The barrier of this team that stands for the one with this index among those of the test.
  __device__ uint32_t barrier(int index) const { return 1 + team * T::BARRIERS + index + (uint32_t)p.zero[0]; }

  __device__ uint32_t chance(int role, uint32_t salt) const {
    return mix(((uint64_t)p.seed << 32) ^ ((uint64_t)(group * p.teams + team) << 12) ^ (round << 20) ^ (role * 131u + salt));
  }

  // Meets the other roles of the team, for a bounded time; before and after come the incantations.
  __device__ void align(int role) const {
    if (p.stress & 1) {
      volatile uint32_t* line = p.scratch + (chance(role, 1) % p.scratch_words);
      for (int n = 0; n < 4; n++) { *line = n; (void)*line; }
    }
#pragma unroll
    for (int l = 0; l < T::PLACES; l++)
      if ((p.prefetch >> (l * 2) & 3) == 1 + (chance(role, 2 + l) & 1) && T::GLOBAL >> l & 1)
        asm volatile("prefetch.global.L1 [%0];" ::"l"((uint64_t)p.memory[0] + bytes_at(p, l, round, slot[l])));
    if (T::LANES == 1 && p.align) {  // lanes of one warp take turns, and would wait for each other as long as they may
      if (lane == 0) {
        uint32_t* counter = p.counters + (uint64_t)round * p.groups * p.teams + group * p.teams + team;
        uint32_t seen;
        if (T::DEVICES > 1) asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        else asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        for (uint32_t n = 0; n < p.polls; n++) {
          if (T::DEVICES > 1) asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
          else asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
          if (seen >= p.meet) break;
        }
      }
      __syncwarp();
    }
    if (p.delay) {
      uint32_t ticks = chance(role, 99) % p.delay;
      long long start = clock64();
      while (clock64() - start < ticks) {}
    }
  }

  // What the instance leaves: a register, and at last that this role ran, and where.
  __device__ void log(int value, uint64_t content) const {
    p.log[(uint64_t)value * p.rounds * p.instances + index()] = content;
  }
  __device__ void done(int role, uint32_t incomplete, uint64_t kept) const {
    if (p.tag == 0) p.log[0] = kept;  // never: what was read is used, so that it is read
    p.tags[(uint64_t)role * p.rounds * p.instances + index()] = p.tag << 1 | incomplete;
    if (lane == 0)
      p.where[((uint64_t)round * p.groups * p.teams + group * p.teams + team) * T::ROLES + role] =
          place_of(special_smid(), special_ctaid(), special_cluster(), threadIdx.x / 32, p.device, T::DEVICES > 1 ? gpu_number : 0);
  }
};

// CTAs without a role: they read and write lines of scratch memory.
__device__ inline void stress(const Launch& p) {
  if (!(p.stress & 2)) return;
  uint32_t at = mix(p.seed + blockIdx.x) % p.scratch_words / 32 * 32 + threadIdx.x % p.stress_line;
  volatile uint32_t* word = p.scratch + at % p.scratch_words;
  for (uint32_t n = 0; n < p.rounds * 32; n++) {
    if (n & 1) *word = n; else (void)*word;
  }
}

template <class T> __device__ void prepare_shared(const Launch& p, uint32_t rank) {


  uint32_t step = T::SHARED_BYTES + p.padding, all = p.rounds * p.teams * 32;
  for (uint32_t n = threadIdx.x; n < all * step / 4; n += blockDim.x) ((uint32_t*)shared_memory)[n] = 0;
  __syncthreads();
  for (uint32_t n = threadIdx.x; n < all; n += blockDim.x) T::prepare(shared_memory + n * step);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ inline void everyone_in_cluster(int ranks) {
  if (ranks > 1) {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
  } else {
    __syncthreads();
  }
}

// Before the first round: the CTAs of all GPUs have started. All of a grid are resident, so this ends; and where another
// GPU does not start its grid, it ends as well.
__device__ inline void meet_gpus(const Launch& p) {
  if (threadIdx.x == 0) {
    long long start = clock64();
    uint32_t seen;
    asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(p.meeting) : "memory");
    do {
      asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(p.meeting) : "memory");
    } while (seen < p.ctas && clock64() - start < LATEST);
    if (seen < p.ctas) asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(p.meeting + 1) : "memory");
  }
  __syncthreads();
}

template <class T> __global__ void __launch_bounds__(T::MOST_THREADS) play(const __grid_constant__ Launch p) {
  uint32_t rank = T::RANKS > 1 ? special_rank() : 0;
  uint32_t warp = threadIdx.x / 32, group, unit;
  spot_of(p, T::RANKS > 1 ? special_cluster() : blockIdx.x, T::UNITS, group, unit);
  uint32_t team = warp / T::SEATS, seat = warp % T::SEATS;
  bool plays = group < p.groups && team < p.teams;
  uint32_t lane = threadIdx.x % 32 / T::LANES, sub = threadIdx.x % T::LANES;
  Instance<T> c{p, 0, lane, team, group, (group * p.teams + team) * (32 / T::LANES) + lane, rank};
#pragma unroll
  for (int l = 0; l < T::PLACES; l++) c.slot[l] = slot_of(c.instance, p.multiplier[l], p.addend[l], p.instances);
  if (T::SHARED_BYTES > 0) { prepare_shared<T>(p, rank); everyone_in_cluster(T::RANKS); }
  if (T::DEVICES > 1 && p.ctas) meet_gpus(p);
  if (plays) {
    for (uint32_t round = 0; round < p.rounds; round++) {
      c.round = round;
      uint32_t u = turned(unit, c.round, p.turn_unit, T::UNITS), k = turned(rank, c.round, p.turn_rank, T::RANKS);
      uint32_t s = turned(seat, c.round, p.turn_seat, T::SEATS);
      T::run(c, T::role(p.device, u, k, s, sub));
      // Who only arrives at a barrier is not to arrive at it for the next round before the others have waited.
      if (T::ARRIVES)
        asm volatile("barrier.cta.sync %0, %1;" ::"r"(c.barrier(T::BARRIERS - 1)), "r"(32 * T::SEATS) : "memory");
    }
  } else if (!T::CLUSTER_BARRIER) {
    stress(p);
  }
  if (T::DRAIN) {
    long long start = clock64();
    while (clock64() - start < 200000) {}
  }
  if (T::SHARED_BYTES > 0) {
    everyone_in_cluster(T::RANKS);
    if (plays)
      for (uint32_t round = 0; round < p.rounds; round++) {
        c.round = round;
        uint32_t u = turned(unit, c.round, p.turn_unit, T::UNITS), k = turned(rank, c.round, p.turn_rank, T::RANKS);
        if (seat == 0 && sub == 0) T::finish(c, p.device, u, k, shared_memory + ((c.round * p.teams + team) * 32 + c.lane) * (T::SHARED_BYTES + p.padding));
      }
  }
}

struct Entry { unsigned long long key, count; uint64_t value[MOST_VALUES]; };
struct Histogram {
  Entry entry[TABLE];
  unsigned long long instances, incomplete, missing, overflow, misplaced, same_sm, apart, teams, role[MOST_ROLES];
};

__global__ void fill(const __grid_constant__ Launch p, const __grid_constant__ Meta meta) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < p.instances; i += gridDim.x * blockDim.x)
    for (int n = 0; n < meta.initials; n++) {
      const Initial& one = meta.initial[n];
      if (meta.place[one.place].shared) continue;
      uint32_t slot = slot_of(i, p.multiplier[one.place], p.addend[one.place], p.instances);
      for (uint32_t r = 0; r < p.rounds; r++) {
        uint8_t* at = p.memory[0] + bytes_at(p, one.place, r, slot) + one.offset;
        for (uint32_t b = 0; b < one.size; b++) at[b] = (uint8_t)(one.value >> 8 * b);
      }
    }
}

__device__ inline uint64_t value_of(const Launch& p, const Meta& meta, int v, uint32_t round, uint32_t instance) {
  const Value& value = meta.value[v];
  if (value.place < 0 || meta.place[value.place].shared)
    return p.log[(uint64_t)v * p.rounds * p.instances + (uint64_t)round * p.instances + instance];
  uint32_t slot = slot_of(instance, p.multiplier[value.place], p.addend[value.place], p.instances);
  const uint8_t* at = p.memory[0] + bytes_at(p, value.place, round, slot) + value.offset;
  switch (value.size) {
    case 1: return *at;
    case 2: return *(const uint16_t*)at;
    case 4: return *(const uint32_t*)at;
    default: return *(const uint64_t*)at;
  }
}

__device__ inline void add(const Launch& p, const Meta& meta, Histogram* h, unsigned long long key, unsigned long long count,
                           uint32_t round, uint32_t instance) {
  for (uint32_t n = 0; n < 64; n++) {
    Entry& e = h->entry[(key + n) % TABLE];
    unsigned long long old = atomicCAS(&e.key, 0ull, key);
    if (old == 0)
      for (int v = 0; v < meta.values; v++) e.value[v] = value_of(p, meta, v, round, instance);
    if (old == 0 || old == key) { atomicAdd(&e.count, count); return; }
  }
  atomicAdd(&h->overflow, count);
}

__global__ void __launch_bounds__(256) look(const __grid_constant__ Launch p, const __grid_constant__ Meta meta, Histogram* h) {
  __shared__ unsigned long long keys[LOCAL_TABLE];
  __shared__ uint32_t counts[LOCAL_TABLE], example[LOCAL_TABLE][2];
  __shared__ uint32_t incomplete, missing, roles[MOST_ROLES];
  for (uint32_t n = threadIdx.x; n < LOCAL_TABLE; n += blockDim.x) { keys[n] = 0; counts[n] = 0; }
  if (threadIdx.x < MOST_ROLES) roles[threadIdx.x] = 0;
  if (threadIdx.x == 0) { incomplete = 0; missing = 0; }
  __syncthreads();
  const uint64_t all = (uint64_t)p.rounds * p.instances;
  const uint32_t lane = threadIdx.x % 32;
  for (uint64_t x = blockIdx.x * blockDim.x + threadIdx.x; x < all; x += gridDim.x * blockDim.x) {
    uint32_t round = x / p.instances, instance = x % p.instances;
    const uint64_t rest = all - (x - lane);  // where lanes of one warp are threads, the last warp may have fewer
    const uint32_t mask = rest < 32 ? (1u << rest) - 1 : 0xffffffffu;
    bool whole = true, ended = true;
    for (int r = 0; r < meta.roles; r++) {
      uint32_t tag = p.tags[r * all + x];
      bool ran = tag >> 1 == p.tag;
      uint32_t n = __popc(__ballot_sync(mask, ran));
      if (lane == 0) atomicAdd(&roles[r], n);
      whole &= ran; ended &= !(tag & INCOMPLETE);
    }
    unsigned long long key = 1469598103934665603ull;
    for (int v = 0; v < meta.values; v++) {
      key = (key ^ value_of(p, meta, v, round, instance)) * 0x9e3779b97f4a7c15ull;
      key ^= key >> 32;
    }
    key |= 1;
    if (!whole) key = 0; else if (!ended) key = 2;
    for (uint32_t left = mask; left;) {
      int leader = __ffs(left) - 1;
      unsigned long long first = __shfl_sync(left, key, leader);
      uint32_t same = __ballot_sync(left, key == first);
      if (lane == leader) {
        uint32_t count = __popc(same), n = 0;
        if (key == 0) atomicAdd(&missing, count);
        else if (key == 2) atomicAdd(&incomplete, count);
        else {
          for (; n < 8; n++) {
            uint32_t at = (uint32_t)((key >> 8) + n) % LOCAL_TABLE;
            unsigned long long old = atomicCAS(&keys[at], 0ull, key);
            if (old == 0) { example[at][0] = round; example[at][1] = instance; }
            if (old == 0 || old == key) { atomicAdd(&counts[at], count); break; }
          }
          if (n == 8) add(p, meta, h, key, count, round, instance);
        }
      }
      left &= ~same;
      if (same >> lane & 1) break;
    }
    __syncwarp(mask);
  }
  __syncthreads();
  for (uint32_t n = threadIdx.x; n < LOCAL_TABLE; n += blockDim.x)
    if (keys[n]) add(p, meta, h, keys[n], counts[n], example[n][0], example[n][1]);
  if (threadIdx.x < meta.roles) atomicAdd(&h->role[threadIdx.x], (unsigned long long)roles[threadIdx.x]);
  if (threadIdx.x == 0) {
    atomicAdd(&h->incomplete, (unsigned long long)incomplete);
    atomicAdd(&h->missing, (unsigned long long)missing);
  }
  // Every role says where it ran: who belongs into one CTA, one cluster, one GPU was there, and nobody else.
  uint32_t misplaced = 0, same_sm = 0, teams = 0;
  const uint64_t all_teams = (uint64_t)p.rounds * p.groups * p.teams;
  for (uint64_t t = blockIdx.x * blockDim.x + threadIdx.x; t < all_teams; t += gridDim.x * blockDim.x) {
    bool wrong = false, together = false;
    for (int a = 0; a < meta.roles; a++)
      for (int b = 0; b < a; b++) {
        uint64_t x = p.where[t * meta.roles + a], y = p.where[t * meta.roles + b];
        auto same = [x, y](int from, int bits) { return ((x ^ y) >> from & ((1u << bits) - 1)) == 0; };
        bool gpu = same(56, 4), device = gpu && same(52, 4), cluster = device && (meta.ranks == 1 ? same(12, 16) : same(28, 16));
        bool cta = cluster && same(12, 16), warp = cta && same(44, 8), sm = device && same(0, 12);
        bool want_device = meta.device[a] == meta.device[b], want_cluster = want_device && meta.unit[a] == meta.unit[b];
        bool want_cta = want_cluster && meta.rank[a] == meta.rank[b], want_warp = want_cta && meta.seat[a] == meta.seat[b];
        wrong |= gpu != (want_device || meta.grids) || device != want_device || cluster != want_cluster || cta != want_cta || warp != want_warp;
        together |= sm && !cta;
      }
    misplaced += wrong; same_sm += together; teams++;
  }
  if (misplaced) atomicAdd(&h->misplaced, (unsigned long long)misplaced);
  if (same_sm) atomicAdd(&h->same_sm, (unsigned long long)same_sm);
  if (teams) atomicAdd(&h->teams, (unsigned long long)teams);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    h->instances += all;
    h->apart += p.ctas && p.meeting[1];
  }
}

// -- host -------------------------------------------------------------------------------------------------------------

[[noreturn]] inline void fail(const char* test, const char* what, const char* why) {
  printf("{\"test\": \"%s\", \"error\": \"%s: %s\"}\n", test, what, why);
  fflush(stdout);
  exit(3);
}

#define CHECKED(call)                                                              \
  do {                                                                             \
    cudaError_t e_ = (call);                                                       \
    if (e_ != cudaSuccess) ::ptxmm::fail(::ptxmm::current, #call, cudaGetErrorString(e_)); \
  } while (0)

inline const char* current = "";

struct Options {
  uint64_t seed = 1;
  double seconds = 1;
  uint64_t instances = UINT64_MAX;
  std::vector<std::string> only;
  size_t skip = 0;
  bool plain = false;  // without stress, delays and prefetches
};

struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t n) { return n ? (uint32_t)(next() % n) : 0; }
  bool chance(uint32_t percent) { return below(100) < percent; }
  template <class V> typename V::value_type of(const V& items) { return items[below((uint32_t)items.size())]; }
};

inline uint32_t gcd(uint32_t a, uint32_t b) { return b ? gcd(b, a % b) : a; }

// A number that has no divisor in common with n, so that i -> i * m + a is a permutation of the numbers below n.
inline uint32_t coprime(Random& random, uint32_t n) {
  if (n <= 2) return 1;
  for (;;) {
    uint32_t m = 1 + random.below(n - 1);
    if (gcd(m, n) == 1) return m;
  }
}

constexpr uint64_t MEMORY = 128ull << 20;
constexpr uint64_t MOST_INSTANCES = 2u << 20;  // of a launch
constexpr uint32_t MOST_TEAMS = 1u << 18;      // of all rounds of a launch
constexpr uint32_t SCRATCH = 1u << 18;
constexpr int PATIENCE = 5;  // seconds for 16 launches

struct Buffers {
  uint8_t* memory[4];
  uint64_t* log;
  uint32_t *tags, *counters, *scratch;
  uint64_t* where;
  uint32_t* meeting;
  Histogram* histogram;
  int devices, device[MOST_DEVICES];  // the first has the memory, and the others access to it
};

// What a launch of a test looks like, of `most_ctas` that can be resident with `warps` each. Sets all but pointers.
inline bool draw(Random& random, const Meta& meta, uint32_t warps, uint32_t most_ctas, uint32_t shared_limit, Launch& p) {
  uint32_t ctas = most_ctas;
  if (random.chance(25)) ctas = std::max(most_ctas >> (1 + random.below(4)), (uint32_t)(meta.units * meta.ranks));
  p.clusters = ctas / meta.ranks;
  p.groups = p.clusters / meta.units;
  p.teams = warps / meta.seats;
  if (meta.barriers) p.teams = std::min(p.teams, (uint32_t)(15 / meta.barriers));
  if (meta.cluster_barrier && warps % meta.seats) return false;
  p.stress = random.chance(20) ? 1 : 0;
  if (!meta.cluster_barrier && p.groups >= 8 && random.chance(15)) {
    p.stress |= 2;
    p.groups -= p.groups / 4;
  }
  if (p.groups == 0 || p.teams == 0) return false;
  p.instances = p.groups * p.teams * (32 / meta.lanes);
  p.cluster_multiplier = random.chance(30) ? 1 : coprime(random, p.clusters);
  p.cluster_addend = random.below(p.clusters);
  p.padding = meta.shared_bytes ? random.below(3) * 16 : 0;
  // Strides, and whether the places of an instance are neighbours or the instances of a place.
  bool neighbours = random.chance(40);
  uint32_t stride = random.of(std::vector<uint32_t>{4, 4, 8, 16, 16, 32, 64, 128});
  uint64_t record = 0;
  for (int l = 0; l < meta.places; l++) {
    const Place& place = meta.place[l];
    uint64_t cell = std::max<uint64_t>(place.shared ? 0 : std::max(place.size, stride), 1);
    p.cell[l] = place.shared ? 0 : (cell + place.alignment - 1) / place.alignment * place.alignment;
    record = (record + place.alignment - 1) / place.alignment * place.alignment + p.cell[l];
    p.multiplier[l] = random.chance(35) ? 1 : coprime(random, p.instances);
    p.addend[l] = random.below(p.instances);
  }
  record = std::max<uint64_t>((record + 15) / 16 * 16, 16);
  uint32_t widest = 16;
  for (int l = 0; l < meta.places; l++) widest = std::max(widest, meta.place[l].alignment);
  record = (record + widest - 1) / widest * widest;
  uint64_t budget = random.of(std::vector<uint64_t>{8ull << 20, 24ull << 20, 24ull << 20, 96ull << 20});
  uint64_t rounds = std::min<uint64_t>(budget / (record * p.instances), MOST_INSTANCES / p.instances);
  rounds = std::min<uint64_t>(rounds, MOST_TEAMS / (p.groups * p.teams));
  if (meta.shared_bytes) rounds = std::min<uint64_t>(rounds, shared_limit / (p.teams * 32 * (meta.shared_bytes + p.padding)));
  rounds = std::min<uint64_t>(rounds, 4096);
  if (rounds == 0) return false;
  p.rounds = (uint32_t)rounds;
  uint64_t at = 0;
  for (int l = 0; l < meta.places; l++) {
    if (neighbours) {
      at = (at + meta.place[l].alignment - 1) / meta.place[l].alignment * meta.place[l].alignment;
      p.base[l] = at; p.pitch[l] = record; at += p.cell[l];
    } else {
      at = (at + 127) / 128 * 128;
      p.base[l] = at; p.pitch[l] = p.cell[l]; at += p.cell[l] * p.instances * p.rounds;
    }
  }
  p.turn_unit = random.below(65536) << 16 | random.below(65536);
  p.turn_rank = meta.fixed_ranks ? 0 : random.below(65536) << 16 | random.below(65536);
  p.turn_seat = random.below(65536) << 16 | random.below(65536);
  p.align = random.chance(92);
  p.polls = random.of(std::vector<uint32_t>{16, 64, 256, 1024});
  p.delay = random.chance(60) ? 0 : random.of(std::vector<uint32_t>{32, 128, 512, 1024});
  p.prefetch = random.chance(40) ? 0 : (uint32_t)random.next();
  p.stress_line = 1 + random.below(32);
  p.seed = (uint32_t)random.next();
  return true;
}

// The bytes of memory that a launch uses.
inline uint64_t used(const Meta& meta, const Launch& p) {
  uint64_t most = 0;
  for (int l = 0; l < meta.places; l++)
    if (!meta.place[l].shared)
      most = std::max(most, bytes_at(p, l, p.rounds - 1, p.instances - 1) + p.cell[l]);
  return most;
}

using Kernel = void (*)(const Launch);

inline cudaLaunchConfig_t configured(const Meta& meta, uint32_t ctas, uint32_t warps, size_t shared, cudaLaunchAttribute* attribute) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(warps * 32);
  config.dynamicSmemBytes = shared;
  if (meta.ranks > 1) {
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = meta.ranks;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
  }
  return config;
}

// How many CTAs can be resident at once on the current GPU.
inline uint32_t resident(Kernel kernel, const Meta& meta, uint32_t warps, size_t shared, int device) {
  cudaLaunchAttribute attribute;
  if (meta.ranks > 1) {
    int clusters = 0;
    auto config = configured(meta, meta.ranks, warps, shared, &attribute);
    CHECKED(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    return clusters * meta.ranks;
  }
  int each = 0, sms = 0;
  CHECKED(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, warps * 32, shared));
  CHECKED(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  return each * sms;
}

// How many can be resident at once on each of the first GPUs.
inline uint32_t resident_on(const Buffers& b, int gpus, Kernel kernel, const Meta& meta, uint32_t warps, size_t shared) {
  uint32_t least = UINT32_MAX;
  for (int d = gpus; d-- > 0;) {
    CHECKED(cudaSetDevice(b.device[d]));
    least = std::min(least, resident(kernel, meta, warps, shared, b.device[d]));
  }
  return least;
}

inline void show(const Meta& meta, const Histogram& h, uint64_t launches, double seconds, uint64_t seed) {
  printf("{\"test\": \"%s\", \"seed\": %" PRIu64 ", \"instances\": %llu, \"launches\": %" PRIu64 ", \"seconds\": %.3f, ", meta.name,
         seed, h.instances, launches, seconds);
  printf("\"incomplete\": %llu, \"missing\": %llu, \"overflow\": %llu, \"teams\": %llu, \"misplaced\": %llu, \"same_sm\": %llu, \"apart\": %llu, ",
         h.incomplete, h.missing, h.overflow, h.teams, h.misplaced, h.same_sm, h.apart);
  printf("\"roles\": [");
  for (int r = 0; r < meta.roles; r++) printf("%s%llu", r ? ", " : "", h.role[r]);
  printf("], \"histogram\": [");
  bool first = true;
  for (const Entry& e : h.entry)
    if (e.key) {
      printf("%s[%llu, [", first ? "" : ", ", e.count);
      for (int v = 0; v < meta.values; v++) printf("%s%" PRIu64, v ? ", " : "", e.value[v]);
      printf("]]");
      first = false;
    }
  printf("]}\n");
  fflush(stdout);
}

// Waits for the current GPU, but not for ever.
inline void wait_for_gpu() {
  auto start = std::chrono::steady_clock::now();
  cudaError_t state;
  while ((state = cudaStreamQuery(0)) == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(PATIENCE)) {
      printf("{\"test\": \"%s\", \"error\": \"a launch did not end within %d s\"}\n", current, PATIENCE);
      fflush(stdout);
      _exit(3);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (state != cudaSuccess) fail(current, "kernel", cudaGetErrorString(state));
}

inline int gpus_of(const Meta& meta) { return meta.grids ? 1 : meta.devices; }

// False where there are not as many GPUs as the test needs.
inline bool run(const Meta& meta, Kernel kernel, const Buffers& b, const Options& options) {
  current = meta.name;
  const int gpus = gpus_of(meta);
  if (gpus > b.devices) {
    printf("{\"test\": \"%s\", \"error\": \"nothing was run: %d GPUs with access to each other's memory, atomics as well, are needed, and %d %s\"}\n",
           meta.name, gpus, b.devices, b.devices == 1 ? "was found" : "were found");
    fflush(stdout);
    return false;
  }
  cudaDeviceProp properties;
  CHECKED(cudaGetDeviceProperties(&properties, b.device[0]));
  uint32_t limit = UINT32_MAX;
  for (int d = gpus; d-- > 0;) {
    int most = 0;
    CHECKED(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, b.device[d]));
    limit = std::min(limit, (uint32_t)most - 1024);
  }
  for (int d = gpus; d-- > 0;) {
    CHECKED(cudaSetDevice(b.device[d]));
    if (meta.shared_bytes) CHECKED(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    if (meta.ranks > 8) CHECKED(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  }
  cudaFuncAttributes attributes;
  CHECKED(cudaFuncGetAttributes(&attributes, kernel));
  std::vector<uint32_t> sizes;
  for (uint32_t w : {1u, 2u, 4u, 8u, 8u, 16u, 16u, 16u, 32u, 32u})
    if (w >= (uint32_t)meta.seats && w * 32 <= (uint32_t)attributes.maxThreadsPerBlock) sizes.push_back(w);
  for (uint32_t w = meta.seats; w * 32 <= (uint32_t)attributes.maxThreadsPerBlock; w += meta.seats)
    if (w >= 8 || w == (uint32_t)meta.seats) sizes.push_back(w);
  Random random{options.seed * 0x9e3779b97f4a7c15ull};
  for (const char* c = meta.name; *c; c++) random.state = random.state * 31 + *c;
  CHECKED(cudaMemset(b.histogram, 0, sizeof(Histogram)));
  CHECKED(cudaMemset(b.tags, 0, MOST_ROLES * MOST_INSTANCES * 4));
  uint64_t launches = 0, instances = 0;
  std::map<std::pair<uint32_t, size_t>, uint32_t> known;
  auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  for (uint32_t tries = 0; seconds < options.seconds && instances < options.instances && tries < 1000;) {
    uint32_t warps = random.of(sizes);
    size_t shared = 0;
    if (meta.shared_bytes) shared = std::min<size_t>(limit, random.of(std::vector<size_t>{48u << 10, 100u << 10, 200u << 10}));
    auto found = known.find({warps, shared});
    if (found == known.end())
      found = known.emplace(std::make_pair(warps, shared), resident_on(b, gpus, kernel, meta, warps, shared)).first;
    Launch p = {};
    if (found->second < (uint32_t)(meta.units * meta.ranks) ||
        !draw(random, meta, warps, found->second, (uint32_t)shared, p)) { tries++; continue; }
    tries = 0;
    if (options.plain) p.stress = p.delay = p.prefetch = 0;
    for (int a = 0; a < 4; a++) p.memory[a] = b.memory[a];
    p.log = b.log; p.tags = b.tags; p.counters = b.counters; p.where = b.where; p.scratch = b.scratch;
    p.meeting = b.meeting;
    p.ctas = gpus > 1 ? p.clusters * meta.ranks * gpus : 0;
    p.scratch_words = random.of(std::vector<uint32_t>{256, 4096, SCRATCH});
    p.tag = (uint32_t)(launches + 1);
    CHECKED(cudaMemsetAsync(b.memory[0], 0, used(meta, p)));
    CHECKED(cudaMemsetAsync(b.counters, 0, (uint64_t)p.rounds * p.groups * p.teams * 4));
    if (meta.initials) { fill<<<256, 256>>>(p, meta); CHECKED(cudaGetLastError()); }
    if (gpus > 1) { CHECKED(cudaMemsetAsync(b.meeting, 0, 8)); wait_for_gpu(); }
    p.meet = meta.grids ? 0 : meta.roles;
    for (int d = 0; d < meta.devices; d++) {
      if (gpus > 1) CHECKED(cudaSetDevice(b.device[d]));
      p.device = meta.grids ? d : (int)((d + launches) % meta.devices);
      // The counters have those of the grids before as well: these have ended.
      if (meta.grids) p.meet += (uint32_t)std::count(meta.device, meta.device + meta.roles, d);
      cudaLaunchAttribute attribute;
      auto config = configured(meta, p.clusters * meta.ranks, warps, shared, &attribute);
      CHECKED(cudaLaunchKernelEx(&config, kernel, (const Launch)p));
    }
    for (int d = gpus; gpus > 1 && d-- > 0;) { CHECKED(cudaSetDevice(b.device[d])); wait_for_gpu(); }
    look<<<properties.multiProcessorCount * 4, 256>>>(p, meta, b.histogram);
    CHECKED(cudaGetLastError());
    launches++;
    instances += (uint64_t)p.rounds * p.instances;
    if (launches % 16 == 0) {
      wait_for_gpu();
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  }
  wait_for_gpu();
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  static Histogram h;
  CHECKED(cudaMemcpy(&h, b.histogram, sizeof h, cudaMemcpyDeviceToHost));
  show(meta, h, launches, seconds, options.seed);
  return true;
}

#define DRIVER(name, ...)                                                                          \
  do {                                                                                             \
    void* f_ = nullptr;                                                                            \
    cudaDriverEntryPointQueryResult q_;                                                            \
    CHECKED(cudaGetDriverEntryPointByVersion(#name, &f_, 12000, cudaEnableDefault, &q_));          \
    if (!f_) ::ptxmm::fail("", #name, "not in this driver");                                       \
    CUresult r_ = ((decltype(&name))f_)(__VA_ARGS__);                                              \
    if (r_ != CUDA_SUCCESS) ::ptxmm::fail("", #name, std::to_string((int)r_).c_str());             \
  } while (0)

// The memory of the objects, mapped at four addresses: aliases. All `devices` can access it.
inline void map_memory(Buffers& b) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = b.device[0];
  CUmemGenericAllocationHandle handle;
  DRIVER(cuMemCreate, &handle, (size_t)MEMORY, &prop, 0ull);
  std::vector<CUmemAccessDesc> access(b.devices);
  for (int d = 0; d < b.devices; d++) {
    access[d].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[d].location.id = b.device[d];
    access[d].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  for (int a = 0; a < 4; a++) {
    CUdeviceptr address;
    DRIVER(cuMemAddressReserve, &address, (size_t)MEMORY, (size_t)0, (CUdeviceptr)0, 0ull);
    DRIVER(cuMemMap, address, (size_t)MEMORY, (size_t)0, handle, 0ull);
    DRIVER(cuMemSetAccess, address, (size_t)MEMORY, access.data(), (size_t)b.devices);
    b.memory[a] = (uint8_t*)address;
  }
}

// The first GPU, and those that can access its memory, atomically too, of `all`: up to `wanted`. Each is told its number.
inline void find_gpus(Buffers& b, int all, int wanted) {
  for (int d = 0; d < all && b.devices < wanted; d++) {
    int access = 1, atomics = 1;
    if (d > 0) {
      CHECKED(cudaDeviceCanAccessPeer(&access, d, 0));
      CHECKED(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, d, 0));
    }
    if (!access || !atomics) continue;
    CHECKED(cudaSetDevice(d));
    if (d > 0) CHECKED(cudaDeviceEnablePeerAccess(0, 0));
    uint32_t number = (uint32_t)b.devices;
    CHECKED(cudaMemcpyToSymbol(gpu_number, &number, sizeof number));
    b.device[b.devices++] = d;
  }
  CHECKED(cudaSetDevice(0));
}

struct Case { const Meta* meta; Kernel kernel; };

inline int main_of(int count, char** arguments, const std::vector<Case>& cases) {
  Options options;
  for (int n = 1; n < count; n++) {
    std::string word = arguments[n];
    auto value = [&]() -> const char* {
      if (n + 1 >= count) { fprintf(stderr, "%s needs a value\n", word.c_str()); exit(2); }
      return arguments[++n];
    };
    if (word == "--seed") options.seed = strtoull(value(), nullptr, 10);
    else if (word == "--seconds") options.seconds = strtod(value(), nullptr);
    else if (word == "--instances") options.instances = strtoull(value(), nullptr, 10);
    else if (word == "--only") options.only.push_back(value());
    else if (word == "--skip") options.skip = strtoull(value(), nullptr, 10);
    else if (word == "--plain") options.plain = true;
    else { fprintf(stderr, "options: --seed N --seconds S --instances N --only TEST --skip N --plain\n"); return 2; }
  }
  int all = 0, driver = 0, runtime = 0;
  CHECKED(cudaGetDeviceCount(&all));
  CHECKED(cudaDriverGetVersion(&driver));
  CHECKED(cudaRuntimeGetVersion(&runtime));
  cudaDeviceProp properties;
  CHECKED(cudaGetDeviceProperties(&properties, 0));
  Buffers b = {};
  int wanted = 1;
  for (const Case& one : cases) wanted = std::max(wanted, gpus_of(*one.meta));
  find_gpus(b, all, wanted);
  printf("{\"gpu\": \"%s\", \"capability\": \"%d.%d\", \"multiprocessors\": %d, \"gpus\": %d, \"driver\": %d, \"runtime\": %d, \"tests\": %zu}\n",
         properties.name, properties.major, properties.minor, properties.multiProcessorCount, b.devices, driver, runtime, cases.size());
  fflush(stdout);
  map_memory(b);
  CHECKED(cudaMalloc(&b.log, MOST_VALUES * MOST_INSTANCES * 8));
  CHECKED(cudaMalloc(&b.tags, MOST_ROLES * MOST_INSTANCES * 4));
  CHECKED(cudaMalloc(&b.counters, MOST_TEAMS * 4));
  CHECKED(cudaMalloc(&b.where, (uint64_t)MOST_TEAMS * MOST_ROLES * 8));
  CHECKED(cudaMalloc(&b.meeting, 8));
  CHECKED(cudaMalloc(&b.scratch, SCRATCH * 4));
  CHECKED(cudaMalloc(&b.histogram, sizeof(Histogram)));
  CHECKED(cudaMemset(b.where, 0, (uint64_t)MOST_TEAMS * MOST_ROLES * 8));
  bool whole = true;
  for (size_t n = options.skip; n < cases.size(); n++) {
    if (!options.only.empty() && std::find(options.only.begin(), options.only.end(), cases[n].meta->name) == options.only.end())
      continue;
    whole &= run(*cases[n].meta, cases[n].kernel, b, options);
  }
  return whole ? 0 : 4;
}

#endif

}  // namespace ptxmm
