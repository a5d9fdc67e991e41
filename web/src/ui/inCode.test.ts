import { describe, expect, it } from "vitest";
import { linesFor, word } from "./inCode";

describe("the same in code", () => {
  it("is made from the address, with what it names and filters by", () => {
    const job = linesFor("/p/astro/jobs/job_01m7p9mpn530adxntt1ev1a5r9", "")!;
    expect(job.cli.slice(0, 2)).toEqual(["export EASEL_PROJECT=astro", "easel jobs show v1a5r9"]);
    expect(job.python).toContain('job = client.jobs.get("job_01m7p9mpn530adxntt1ev1a5r9")');
    expect(linesFor("/p/astro/jobs", "?state=failed")!.cli[1]).toBe("easel jobs ls --state failed --watch");
    expect(linesFor("/p/astro/lake", "?in=/my%20stars/")!.cli[1]).toBe("easel ls '/my stars/'");
    expect(linesFor("/p/astro/provenance", "?from=a:1&direction=forward")!.cli[1]).toBe(
      "easel trace a:1 --forward",
    );
    expect(linesFor("/p/astro/jobs/compare", "?job=job_aaaaaaaa&job=job_bbbbbbbb")!.cli[1]).toBe(
      "easel jobs compare aaaaaa bbbbbb",
    );
  });
  it("quotes names for the shell and for Python", () => {
    expect(word("it's")).toBe(`'it'\\''s'`);
    expect(linesFor("/p/a%20b/apps/x%22y", "")!.python[2]).toBe('client = easel.Client(project="a b")');
    expect(linesFor("/p/a/apps/x%22y", "")!.python[3]).toBe(String.raw`print(client.apps.get("x\"y").best)`);
  });
  it("is there for every page of a project and for no other", () => {
    for (const page of "apps studies jobs pipelines lake lake/sets lake/search provenance provision".split(
      " ",
    ))
      expect(linesFor(`/p/astro/${page}`, "")).not.toBeNull();
    expect(linesFor("/account", "")).toBeNull();
    expect(linesFor("/p/astro/nowhere", "")).toBeNull();
  });
});
