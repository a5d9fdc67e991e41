import { expect, test } from "vitest";
import { memory } from "./format";
import { gpuWords } from "./gpus";

test("a device says what its GPUs are and who holds them", () => {
  const device = { gpus: 1, gpu_kind: "NVIDIA H200", gpu_memory_mb: 143771, gpus_held: 0.5, gpu_jobs: 2 };
  expect(gpuWords(device)).toBe(`1 NVIDIA H200 with ${memory(143771)}, 0.5 held by 2 jobs`);
});

test("GPUs that nobody holds are free, and unknown ones have no memory", () => {
  expect(gpuWords({ gpus: 2, gpu_kind: null, gpu_memory_mb: null, gpus_held: 0, gpu_jobs: 0 })).toBe(
    "2 GPU, free",
  );
});
