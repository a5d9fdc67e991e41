import Papa from "papaparse";
import type { Schemas } from "../api/client";
import { lookOf } from "../api/lake";
import { Problem } from "../api/problem";
import type { Dropped } from "../ui/Drop";

const ROWS = 2_000;
const MEASURED = 50;

/** What the server needs to see of the data: a table's first rows, or where the pictures lie and how large some are. */
export async function proposalOf(files: Dropped[]): Promise<Schemas["ProposeProgram"]> {
  const pictures = files.filter(({ path }) => lookOf(path).as === "image");
  if (pictures.length > 0) return { header: [], rows: [], pictures: await sizesOf(pictures) };
  const table = files.find(({ path }) => lookOf(path).as === "table");
  if (!table) throw new Problem(-1, "page", "Drop a table (.csv or .tsv) or a folder of pictures.");
  return tableOf(await table.file.slice(0, 4_000_000).text());
}

export function tableOf(text: string): Schemas["ProposeProgram"] {
  const { data } = Papa.parse<string[]>(text, { preview: ROWS + 1, skipEmptyLines: true });
  return { header: data[0] ?? [], rows: data.slice(1), pictures: {} };
}

/** The folder that was dropped is not part of the class: paths begin at the class. */
export function classPath(path: string): string {
  return path.split("/").slice(-2).join("/");
}

async function sizesOf(pictures: Dropped[]): Promise<Record<string, number[] | null>> {
  const found: Record<string, number[] | null> = {};
  for (const [i, { path, file }] of pictures.entries())
    found[classPath(path)] = i < MEASURED ? await sizeOf(file) : null;
  return found;
}

async function sizeOf(file: File): Promise<number[] | null> {
  try {
    const picture = await createImageBitmap(file);
    const size = [picture.height, picture.width, 3];
    picture.close();
    return size;
  } catch {
    return null; // the server reads what the browser cannot
  }
}
