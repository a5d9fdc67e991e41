import { describe, expect, it } from "vitest";
import { placeOf } from "./places";
import { titleOf } from "./title";

describe("tabs of the browser", () => {
  it("name the thing, the section and the project", () => {
    expect(titleOf("/")).toBe("Easel");
    expect(titleOf("/account")).toBe("Account · Easel");
    expect(titleOf("/p/astro")).toBe("Overview · astro · Easel");
    expect(titleOf("/p/astro/apps/d%C3%BCnn")).toBe("dünn · Apps · astro · Easel");
    expect(titleOf("/p/astro/jobs/job_01", "train")).toBe("train · Jobs · astro · Easel");
    expect(titleOf("/p/astro/lake/sets")).toBe("File sets · Lake · astro · Easel");
    expect(titleOf("/p/astro/%E0%A4%A")).toContain("astro");
  });
});

describe("links", () => {
  it("lead from a reference to where it is looked at", () => {
    expect(placeOf("a", "digits-model:6")).toBe("/p/a/lake/sets?set=digits-model&version=6");
    expect(placeOf("a", "/code/train.py:2")).toBe(
      "/p/a/lake?in=%2Fcode%2F&file=%2Fcode%2Ftrain.py&version=2",
    );
    expect(placeOf("a", "/stars/")).toBe("/p/a/lake?in=%2Fstars%2F");
    expect(placeOf("a", "/stars/@sky:1")).toBe("/p/a/lake?in=%2Fstars%2F%40sky%3A1");
  });
});
