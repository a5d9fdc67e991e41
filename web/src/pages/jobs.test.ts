import { describe, expect, it } from "vitest";
import type { Event } from "../api/client";
import { filtersOf } from "../api/jobs";
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
});
