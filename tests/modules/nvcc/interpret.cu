// A switch that becomes an indirect branch.
__global__ void interpret(const int* code, int* out, int n) {
  int a = 0;
  for (int i = 0; i < n; i++) {
    switch (code[i]) {
      case 0: a = out[1]; break;
      case 1: out[2] = a; break;
      case 2: a += 3; break;
      case 3: a *= out[4]; break;
      case 4: atomicAdd(out, a); break;
      case 5: __threadfence(); break;
      case 6: __syncthreads(); break;
      case 7: a = atomicExch(out + 3, a); break;
      case 8: a ^= 5; break;
      case 9: a = __shfl_sync(~0u, a, 3); break;
      case 10: out[a] = 1; break;
      case 11: a = __ballot_sync(~0u, a); break;
      default: return;
    }
  }
  out[0] = a;
}
