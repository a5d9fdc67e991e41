import type { Device, Job } from "./api/client";
import { money, promised, standing, type Budget } from "./api/spending";
import { resourcesOf } from "./ui/Devices";
import { count, memory } from "./ui/format";

export type Alert = { key: string; grave: boolean; text: string; to: string };

export type Known = {
  budget?: Budget;
  devices?: Device[];
  paused: string[];
  waiting: Job[];
  failed: Job[];
};

const RECENT_MS = 3_600_000;
const MANY = 3;

/** What somebody should look at now, the gravest first; `to` is a page of the project. */
export function alertsOf(known: Known, now: number): Alert[] {
  const found = [
    ...ofBudget(known.budget),
    ...ofDevices(known),
    ...ofMisfits(known),
    ...ofFailures(known.failed, now),
    ...ofPauses(known.paused),
  ];
  return found.sort((a, b) => Number(b.grave) - Number(a.grave));
}

function ofBudget(budget: Budget | undefined): Alert[] {
  const state = budget ? standing(budget) : "none";
  if (!budget || budget.limit === null || state === "none" || state === "well") return [];
  const sum = (amount: number) => money(amount, budget.currency);
  const used = `${sum(budget.spent + promised(budget))} of ${sum(budget.limit)}`;
  const ends = budget.hard_stop ? " New jobs are refused." : "";
  return [
    state === "over"
      ? {
          key: "budget",
          grave: true,
          text: `The budget is used up: ${used} are spent or promised.${ends}`,
          to: "spending",
        }
      : {
          key: "budget",
          grave: false,
          text: `The budget is nearly used up: ${used} are spent or promised.`,
          to: "spending",
        },
  ];
}

function ofDevices({ devices, waiting }: Known): Alert[] {
  if (!devices) return [];
  if (!devices.some((device) => device.connected))
    return [
      {
        key: "no-device",
        grave: waiting.length > 0,
        text: "No device is connected: nothing can run until a worker is started.",
        to: "",
      },
    ];
  const gone = devices.filter((device) => !device.connected).map((device) => device.name);
  return gone.length > 0
    ? [{ key: "gone", grave: false, text: `Not connected: ${listed(gone)}.`, to: "" }]
    : [];
}

/** Jobs that wait for more than any device has. */
function ofMisfits({ devices, waiting }: Known): Alert[] {
  const here = (devices ?? []).filter((device) => device.connected);
  if (here.length === 0) return [];
  const fits = (job: Job) => {
    const wanted = resourcesOf(job);
    const asks = (name: string) => Number(wanted[name] ?? 0);
    return here.some(
      (device) =>
        asks("vcpu") <= device.vcpu && asks("memory_mb") <= device.memory_mb && asks("gpus") <= device.gpus,
    );
  };
  return waiting
    .filter((job) => !fits(job))
    .slice(0, MANY)
    .map((job) => {
      const wanted = resourcesOf(job);
      const asked = `${String(wanted.vcpu)} vCPU, ${memory(Number(wanted.memory_mb))} and ${String(wanted.gpus ?? 0)} GPU`;
      return {
        key: job.id,
        grave: true,
        text: `${job.name} cannot start: no device has ${asked}.`,
        to: `jobs/${job.id}`,
      };
    });
}

function ofFailures(failed: Job[], now: number): Alert[] {
  const recent = failed.filter((job) => job.ended_at && now - Date.parse(job.ended_at) < RECENT_MS);
  if (recent.length === 0) return [];
  const which = recent.length === 1 ? `${recent[0]!.name} failed` : `${count(recent.length)} jobs failed`;
  return [
    {
      key: "failed",
      grave: recent.length >= MANY,
      text: `${which} within the last hour.`,
      to: "jobs?state=failed",
    },
  ];
}

function ofPauses(paused: string[]): Alert[] {
  if (paused.length === 0) return [];
  return [
    {
      key: "paused",
      grave: false,
      text: `Paused: ${listed(paused)}. Their jobs wait until an admin resumes the queue.`,
      to: "people",
    },
  ];
}

function listed(names: string[]): string {
  return names.length > 5
    ? `${names.slice(0, 5).join(", ")} and ${count(names.length - 5)} more`
    : names.join(", ");
}
