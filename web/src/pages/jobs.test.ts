import { describe, expect, it } from "vitest";
import type { Event } from "../api/client";
import { filtersOf, killedBy } from "../api/jobs";
import { heldOf, poolWords } from "../api/pool";
import { stepsOf } from "./Job";

const event = (kind: string, subject: string, at = "2026-01-01T00:00:00Z") =>
  ({ seq: 1, at, kind, subject, project_id: "p", actor: null, body: {} }) as Event;

describe("jobs", () => {
  it("are filtered by what the form holds", () => {
    expect(filtersOf({ name: "a:b", state: "", user: "u", sort: "", where: "" })).toEqual([
      "name:contains:a:b",
      "user_id:eq:u",
    ]);
  });
  it("show the steps of the last attempt", () => {
    const events = [
      event("job.running", "a", "1"),
      event("job.queued", "a", "2"),
      event("job.launching", "a", "3"),
    ];
    const steps = stepsOf({ state: "launching", submitted_at: "0" }, events);
    expect(steps.map((s) => s.at)).toEqual(["2", "3", null, null, null, null]);
    expect(steps.map((s) => s.done)).toEqual([true, false, false, false, false, false]);
  });
  it("end their steps where they failed", () => {
    const steps = stepsOf({ state: "failed", submitted_at: "0" }, [
      event("job.launching", "a", "1"),
      event("job.failed", "a", "2"),
    ]);
    expect(steps.map((s) => s.state)).toEqual(["queued", "launching", "failed"]);
  });
  it("that the overview counts as running are found by the filter that it links to", () => {
    expect(filtersOf({ name: "", state: "active", user: "", sort: "", where: "" })).toEqual([
      "state:in:launching,downloading,running,uploading",
    ]);
  });
  it("say who killed them", () => {
    expect(killedBy("ana")).toBe("killed by ana from the dashboard");
  });
  it("wait beside the whole pool, others' share unnamed", () => {
    const held = (vcpu: number) => ({ jobs: 1, vcpu, memory_mb: 0, gpus: 0 });
    const pool = {
      items: [{ device: "box", mine: held(0.5), others: held(1.5) }],
      waiting: 1,
      waiting_others: 2,
    };
    const device = { name: "box", connected: true, vcpu: 2 } as Parameters<typeof poolWords>[1][number];
    expect(poolWords(pool, [device])).toBe(
      "Of 2 vCPU in the pool this project uses 0.5, others use 1.5, 0 are free. Jobs that wait for room: 1 of this project, 2 of others.",
    );
    expect(heldOf(pool, "other").others.vcpu).toBe(0);
  });
});
