import { describe, expect, it } from "vitest";
import type { Event, Job } from "../api/client";
import { filtersOf } from "../api/jobs";
import { differences } from "./Compare";
import { stepsOf } from "./Job";

const event = (kind: string, subject: string, at = "2026-01-01T00:00:00Z") =>
  ({ seq: 1, at, kind, subject, project_id: "p", actor: null, body: {} }) as Event;
const job = (id: string, more: Partial<Job> = {}) => ({ id, state: "queued", spec: {}, ...more }) as Job;

describe("jobs", () => {
  it("are filtered by what the form holds", () => {
    expect(filtersOf({ name: "a:b", state: "", user: "u", sort: "" })).toEqual([
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
  it("are compared with what differs first", () => {
    const spec = (vcpu: number) => ({ run: { argv: ["x"] }, resources: { vcpu } });
    const rows = differences([job("a", { spec: spec(1) }), job("b", { spec: spec(2) })]);
    expect(rows[0]).toEqual({ name: "vcpu", values: ["1", "2"], differs: true });
    expect(rows.slice(1).every((row) => !row.differs)).toBe(true);
  });
});
