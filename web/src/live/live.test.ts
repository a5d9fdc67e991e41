import { describe, expect, it } from "vitest";
import type { Event } from "../api/client";
import { patched, stateAfter, type Row } from "../api/jobs";
import { staleKeys } from "./Live";
import { pause } from "./stream";

const event = (kind: string, subject: string, at = "2026-01-01T00:00:00Z") =>
  ({ seq: 1, at, kind, subject, project_id: "p", actor: null, body: {} }) as Event;
const row = (id: string) => ({ job: { id, state: "queued", spec: {} }, tags: {} }) as Row;

describe("live pages", () => {
  it("refresh what an event touches", () => {
    expect(staleKeys("job.finished")).toEqual(["events", "job", "queues"]);
    expect(staleKeys("novelty.happened")).toEqual(["events", "novelty"]);
  });
  it("wait longer after each failed attempt, but not for ever", () => {
    expect(pause(0, () => 1)).toBeLessThan(pause(3, () => 1));
    expect(pause(50, () => 1)).toBe(30);
    expect(pause(50, () => 0)).toBe(15);
  });
  it("write new states into long lists and leave untouched pages as they are", () => {
    const pages = [{ items: [row("a"), row("b")] }, { items: [row("c")] }];
    const after = patched(pages, [
      event("job.running", "b"),
      event("job.finished", "b"),
      event("job.late_report", "a"),
    ]);
    expect(after[0]!.items.map((one) => one.job.state)).toEqual(["queued", "finished"]);
    expect(after[1]).toBe(pages[1]);
    expect(stateAfter("job.late_report")).toBeNull();
  });
});
