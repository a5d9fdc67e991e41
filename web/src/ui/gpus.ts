import type { Device } from "../api/client";
import { memory } from "./format";

type Gpus = Pick<Device, "gpus" | "gpu_kind" | "gpu_memory_mb" | "gpus_held" | "gpu_jobs">;

/** One line: how many GPUs of which kind and memory, and how much of them running jobs hold. */
export function gpuWords(device: Gpus): string {
  const kind = device.gpu_kind ?? "GPU";
  const size = device.gpu_memory_mb ? ` with ${memory(device.gpu_memory_mb)}` : "";
  const jobs = device.gpu_jobs ?? 0;
  const held =
    jobs > 0
      ? `${Number((device.gpus_held ?? 0).toFixed(2))} held by ${jobs} job${jobs > 1 ? "s" : ""}`
      : "free";
  return `${device.gpus} ${kind}${size}, ${held}`;
}
