/** Outputs of notebook cells in forms that a page can show without running anything of theirs. */

export type Output = {
  output_type?: string;
  name?: string;
  text?: unknown;
  data?: Record<string, unknown>;
  ename?: string;
  evalue?: string;
  traceback?: unknown;
};

export type Shown = { as: "text" | "error" | "page"; text: string } | { as: "image"; address: string };

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;

/** Sources and texts come as one string or as a list of lines. */
export function sourceOf(given: unknown): string {
  return Array.isArray(given) ? given.map(String).join("") : typeof given === "string" ? given : "";
}

/** Without the colours of a terminal. */
export function plain(text: string): string {
  return text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "");
}

/** How one output is shown: pictures as such, HTML only inside a frame that runs nothing, all else as text. */
export function outputOf(output: Output): Shown {
  if (output.output_type === "error") {
    const lines = Array.isArray(output.traceback) ? output.traceback.map(String).join("\n") : "";
    return { as: "error", text: plain(lines || `${output.ename ?? ""}: ${output.evalue ?? ""}`) };
  }
  if (output.output_type === "stream")
    return { as: output.name === "stderr" ? "error" : "text", text: plain(sourceOf(output.text)) };
  const data = output.data ?? {};
  const picture = IMAGES.find((type) => BASE64.test(sourceOf(data[type])) && sourceOf(data[type]));
  if (picture)
    return { as: "image", address: `data:${picture};base64,${sourceOf(data[picture]).replace(/\s/g, "")}` };
  const drawing = sourceOf(data["image/svg+xml"]);
  // As an image a drawing runs no script and fetches nothing.
  if (drawing)
    return { as: "image", address: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}` };
  const page = sourceOf(data["text/html"]);
  if (page) return { as: "page", text: page };
  return { as: "text", text: plain(sourceOf(data["text/plain"])) };
}
