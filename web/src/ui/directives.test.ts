import { describe, expect, it } from "vitest";
import { directiveIn } from "./directives";

describe("lines of a log that tell the platform something", () => {
  it("are shown in plain words", () => {
    expect(directiveIn("[EASEL_METRIC] accuracy=0.97 step=192")).toEqual({
      what: "metric",
      text: "accuracy = 0.97, step 192",
    });
    expect(directiveIn("[EASEL_METRIC] loss=nan")?.text).toBe("loss = nan");
    expect(directiveIn("[EASEL_PROGRESS] 0.4")).toEqual({ what: "progress", text: "40 %" });
    expect(directiveIn("[EASEL_TAG] job model:BERT")?.text).toBe("model: BERT");
    expect(directiveIn("[ACAI_TAG_NUM] fileset precision:0.7")?.text).toBe("precision: 0.7 (fileset)");
  });
  it("stay as they are where they say nothing", () => {
    for (const line of ["epoch 3: loss 0.2", "[EASEL_METRIC] nothing", "[EASEL_PROGRESS] 7", "[EASEL_TAG] x"])
      expect(directiveIn(line)).toBeNull();
  });
});
