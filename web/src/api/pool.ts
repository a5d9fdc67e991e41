import { useQuery } from "@tanstack/react-query";
import { answer, api, type Device, type Schemas } from "./client";

export type PoolUse = Schemas["PoolUse"];
export type DeviceUse = Schemas["DeviceUse"];

/** Who holds the pool: this project, and all others together. It changes without an event of this project. */
export function usePool(project: string) {
  return useQuery({
    queryKey: [project, "job", "pool"],
    enabled: project !== "",
    queryFn: () => answer(api.GET("/api/v1/projects/{project}/pool", { params: { path: { project } } })),
    refetchInterval: 5_000,
  });
}

const NOTHING = { jobs: 0, vcpu: 0, memory_mb: 0, gpus: 0 };

/** What is held of one device; nothing where nobody holds any of it. */
export function heldOf(pool: PoolUse | undefined, device: string): DeviceUse {
  return pool?.items.find((one) => one.device === device) ?? { device, mine: NOTHING, others: NOTHING };
}

/** One sentence: how full the pool is, and who waits for it. */
export function poolWords(pool: PoolUse, devices: Device[]): string {
  const here = devices.filter((device) => device.connected);
  const all = here.reduce((sum, device) => sum + device.vcpu, 0);
  const held = (who: "mine" | "others") => pool.items.reduce((sum, one) => sum + one[who].vcpu, 0);
  const round = (value: number) => String(Number(value.toFixed(1)));
  const free = Math.max(0, all - held("mine") - held("others"));
  const waiting = [
    pool.waiting > 0 && `${pool.waiting} of this project`,
    pool.waiting_others > 0 && `${pool.waiting_others} of others`,
  ].filter(Boolean);
  const queue =
    waiting.length > 0 ? ` Jobs that wait for room: ${waiting.join(", ")}.` : " No job waits for room.";
  return `Of ${round(all)} vCPU in the pool this project uses ${round(held("mine"))}, others use ${round(held("others"))}, ${round(free)} are free.${queue}`;
}
