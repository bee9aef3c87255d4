// A work-stealing deque: the owner pushes a task and advances the tail, a thief reads the task and takes it by
// atomicCAS.
// From: GPU Computing Gems as printed; Alglave et al. (ASPLOS 2015).
// Wrong: the owner advances the tail without a fence behind the task.
//
// ptxmm: kernel = "deque"
// ptxmm: grid = 2
// ptxmm: args = ["head", "tail", "tasks", "out"]
// ptxmm: [objects]
// ptxmm: head = "u32"
// ptxmm: tail = "u32"
// ptxmm: tasks = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", init = 42 }
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

// The owner pushes at the tail, a thief takes from the head.
extern "C" __global__ void deque(unsigned *head, volatile unsigned *tail, unsigned *tasks, unsigned *out)
{
    if (blockIdx.x == 0) {
        unsigned slot = *tail;
        tasks[slot] = 42;
        *tail = slot + 1;
    } else {
        unsigned oldest = *static_cast<volatile unsigned *>(head);
        if (oldest < *tail) {
            __threadfence();
            unsigned task = tasks[oldest];  // WRONG
            if (atomicCAS(head, oldest, oldest + 1) == oldest)
                *out = task;
        }
    }
}
