import { expect, test } from "vitest";
import { outputOf, plain, sourceOf } from "./notebook";

test("sources are joined whatever form they come in", () => {
  expect(sourceOf(["a\n", "b"])).toBe("a\nb");
  expect(sourceOf("a")).toBe("a");
  expect(sourceOf(7)).toBe("");
});

test("colours of a terminal are taken away", () => {
  expect(plain("\u001b[31mred\u001b[0m")).toBe("red");
});

test("pictures are shown as pictures, and only where they are base64", () => {
  const picture = outputOf({ output_type: "display_data", data: { "image/png": "iVBO\nRw0=" } });
  expect(picture).toEqual({ as: "image", address: "data:image/png;base64,iVBORw0=" });
  const trick = outputOf({ data: { "image/png": '"><script>', "text/plain": "x" } });
  expect(trick).toEqual({ as: "text", text: "x" });
});

test("a drawing becomes an image, which runs no script", () => {
  const shown = outputOf({ data: { "image/svg+xml": "<svg onload='x()'/>" } });
  expect(shown.as).toBe("image");
});

test("HTML is only ever for a frame that runs nothing", () => {
  expect(outputOf({ data: { "text/html": "<script>1</script>", "text/plain": "x" } })).toEqual({
    as: "page",
    text: "<script>1</script>",
  });
});

test("an error shows its traceback", () => {
  expect(
    outputOf({ output_type: "error", ename: "E", evalue: "v", traceback: ["\u001b[1mE\u001b[0m"] }),
  ).toEqual({
    as: "error",
    text: "E",
  });
});
