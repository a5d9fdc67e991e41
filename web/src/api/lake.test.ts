import { describe, expect, it } from "vitest";
import { folderIn, folderOf, lookOf, queryOf, targetOf, trail, readable } from "./lake";
import { partsOf, valueOf } from "../ui/Tags";

describe("the lake", () => {
  it("is searched by lines that are joined, with names always in quotes", () => {
    const lines = [
      { key: "name", operator: "=", value: "007" },
      { key: "precision", operator: ">", value: "0.5" },
      { key: "model", operator: "=", value: 'a "b"' },
      { key: "", operator: "=", value: "dropped" },
    ];
    expect(queryOf(lines)).toBe('name = "007" and precision > 0.5 and model = "a \\"b\\""');
  });
  it("knows the folders above a path and where a dropped file goes", () => {
    expect(trail("/a/b/").map((part) => part.path)).toEqual(["/a/", "/a/b/"]);
    expect(targetOf("/a", "x.txt")).toBe("/a/x.txt");
    expect(targetOf("/a/", "in/x.txt")).toBe("/a/in/x.txt");
  });
  it("shows files by their ending and text only if it is text", () => {
    expect([lookOf("/a.PNG").as, lookOf("/a.csv").as, lookOf("/a").as]).toEqual(["image", "table", "text"]);
    expect(readable(new TextEncoder().encode("é").subarray(0, 1))).toBe("");
    expect(readable(new Uint8Array([0xff, 0xfe, 0xfd, 0xfc, 0xfb]))).toBeNull();
    expect(readable(new Uint8Array([65, 0, 66]))).toBeNull();
  });
  it("names a job by its id and the rest by name and version", () => {
    expect(partsOf("job", "job_1")).toEqual(["job_1", "1"]);
    expect(partsOf("file", "/a:b/c.txt:12")).toEqual(["/a:b/c.txt", "12"]);
  });
  it("takes tags that are numbers as numbers", () => {
    expect([valueOf("0.5"), valueOf("x"), valueOf(" "), valueOf("Infinity")]).toEqual([
      0.5,
      "x",
      " ",
      "Infinity",
    ]);
  });
  it("stays in the version of a set while its folders are opened", () => {
    expect(folderOf("/@sky:1")).toEqual({ path: "/", set: "sky:1" });
    expect(folderOf("/stars/@sky:1")).toEqual({ path: "/stars/", set: "sky:1" });
    expect(folderOf("/stars/")).toEqual({ path: "/stars/", set: null });
    expect(folderIn("sky:1", "/stars/")).toBe("/stars/@sky:1");
    expect(folderIn(null, "/stars/")).toBe("/stars/");
  });
});
