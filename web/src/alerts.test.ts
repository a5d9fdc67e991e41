import { describe, expect, it } from "vitest";
import { alertsOf, type Known } from "./alerts";
import type { Device, Job } from "./api/client";
import { midnight, type Budget } from "./api/spending";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const device = (name: string, more: Partial<Device> = {}) =>
  ({
    name,
    executor: "local",
    connected: true,
    vcpu: 4,
    memory_mb: 8192,
    gpus: 0,
    notes: {},
    seen_at: "2026-03-01T12:00:00Z",
    ...more,
  }) as Device;
const job = (name: string, more: Partial<Job> = {}) =>
  ({
    id: `job_${name}`,
    name,
    state: "queued",
    spec: { resources: { vcpu: 1, memory_mb: 512, gpus: 0 } },
    ended_at: null,
    ...more,
  }) as Job;
const budget = (spent: number, more: Partial<Budget> = {}) =>
  ({
    limit: 10,
    currency: "EUR",
    period: "month",
    warn_at: [0.5, 0.8],
    hard_stop: true,
    spent,
    committed: spent,
    spent_since: 1,
    ...more,
  }) as Budget;
const calm: Known = { budget: budget(1), devices: [device("a")], paused: [], waiting: [], failed: [] };
const texts = (more: Partial<Known>) => alertsOf({ ...calm, ...more }, NOW).map((alert) => alert.text);

describe("alerts", () => {
  it("are none where all is well, or nothing is known yet", () => {
    expect(texts({})).toEqual([]);
    expect(texts({ budget: undefined, devices: undefined })).toEqual([]);
  });
  it("tell of a budget before it is used up and after", () => {
    expect(texts({ budget: budget(8) })).toEqual([
      "The budget is nearly used up: 8.00 EUR of 10.00 EUR are spent or promised.",
    ]);
    expect(texts({ budget: budget(9, { committed: 10 }) })[0]).toContain(
      "used up: 10.00 EUR of 10.00 EUR are spent or promised. New jobs are refused.",
    );
    expect(texts({ budget: budget(99, { limit: null }) })).toEqual([]);
  });
  it("tell of devices that are gone", () => {
    expect(texts({ devices: [device("a"), device("b", { connected: false })] })).toEqual([
      "Not connected: b.",
    ]);
    expect(texts({ devices: [device("b", { connected: false })] })[0]).toContain("No device is connected");
  });
  it("tell of a job that asks for more than any one device has", () => {
    const greedy = job("greedy", { spec: { resources: { vcpu: 5, memory_mb: 2048, gpus: 0 } } });
    expect(texts({ devices: [device("a"), device("b")], waiting: [job("small"), greedy] })).toEqual([
      "greedy cannot start: no device has 5 vCPU, 2 GB and 0 GPU.",
    ]);
    expect(
      texts({ devices: [device("a", { connected: false }), device("b")], waiting: [job("small")] }),
    ).toEqual(["Not connected: a."]);
  });
  it("count failures of the last hour only", () => {
    const at = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString();
    const failed = [5, 20, 90].map((minutes) =>
      job(`f${minutes}`, { state: "failed", ended_at: at(minutes) }),
    );
    expect(texts({ failed })).toEqual(["2 jobs failed within the last hour."]);
    expect(texts({ failed: failed.slice(0, 1) })).toEqual(["f5 failed within the last hour."]);
    expect(texts({ failed: failed.slice(2) })).toEqual([]);
  });
  it("put the gravest first and shorten long lists", () => {
    const paused = ["a", "b", "c", "d", "e", "f", "g"];
    const found = alertsOf({ ...calm, paused, budget: budget(11) }, NOW);
    expect(found.map((alert) => alert.key)).toEqual(["budget", "paused"]);
    expect(found[1]!.text).toContain("a, b, c, d, e and 2 more");
  });
});

describe("today", () => {
  it("begins at the viewer's own midnight", () => {
    const noon = new Date(2026, 2, 1, 12, 30);
    expect(midnight(noon)).toBe(new Date(2026, 2, 1).toISOString());
  });
});
