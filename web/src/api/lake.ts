import { blake3 } from "@noble/hashes/blake3";
import { useQuery } from "@tanstack/react-query";
import { answer, api, type Schemas } from "./client";
import { Problem } from "./problem";

export type FileItem = Schemas["FileItem"];
export type FileSet = Schemas["FileSet"];
export type Artifact = Schemas["Artifact"];
export type Kind = Schemas["Kind"];

const BLOCK = 2 ** 20;
const AT_ONCE = 100;

export function useFolder(project: string, ref: string) {
  return useQuery({
    queryKey: [project, "files", ref],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/files", {
          params: { path: { project }, query: { ref, limit: 2000 } },
        }),
      ),
  });
}

export type Progress = { phase: string; done: number; total: number };

/** All of it becomes visible at once, when the session is committed; what the lake holds already is not sent again. */
export async function upload(
  project: string,
  files: { path: string; file: File }[],
  tell: (progress: Progress) => void,
): Promise<void> {
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  const byHash = new Map<string, File>();
  const items: Schemas["NewFile"][] = [];
  let done = 0;
  for (const { path, file } of files) {
    const hash = await hashOf(file, (size) => tell({ phase: "Reading", done: (done += size), total }));
    byHash.set(hash, file);
    items.push({ path, size: file.size, hash });
  }
  const params = { path: { project } };
  const session = await answer(api.POST("/api/v1/projects/{project}/uploads", { params, body: {} }));
  const at = { params: { path: { project, upload_id: session.id } } };
  const { wanted } = await answer(
    api.POST("/api/v1/projects/{project}/uploads/{upload_id}/files", { ...at, body: { files: items } }),
  );
  const toSend = wanted.reduce((sum, hash) => sum + (byHash.get(hash)?.size ?? 0), 0);
  let sent = 0;
  for (let i = 0; i < wanted.length; i += AT_ONCE) {
    const objects = wanted
      .slice(i, i + AT_ONCE)
      .map((hash) => ({ hash, size: byHash.get(hash)!.size, members: [] }));
    const { transfers } = await answer(
      api.POST("/api/v1/projects/{project}/uploads/{upload_id}/objects", { ...at, body: { objects } }),
    );
    for (const { hash, parts } of transfers) {
      for (const part of parts) {
        const body = byHash.get(hash)!.slice(part.offset, part.offset + part.size);
        const response = await fetch(part.url, { method: "PUT", body });
        if (!response.ok)
          throw new Problem(response.status, "upload", "A part could not be stored: upload again.");
        tell({ phase: "Sending", done: (sent += part.size), total: toSend });
      }
      const path = { project, upload_id: session.id, digest: hash };
      await answer(
        api.POST("/api/v1/projects/{project}/uploads/{upload_id}/objects/{digest}/finish", {
          params: { path },
        }),
      );
    }
  }
  await answer(api.POST("/api/v1/projects/{project}/uploads/{upload_id}/commit", at));
}

/** Block by block, so that the page stays usable while gigabytes are read. */
async function hashOf(file: Blob, read: (size: number) => void): Promise<string> {
  const hash = blake3.create();
  for (let start = 0; start < file.size; start += BLOCK) {
    const block = new Uint8Array(await file.slice(start, start + BLOCK).arrayBuffer());
    hash.update(block);
    read(block.length);
  }
  return Array.from(hash.digest(), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** At most `most` bytes of one file version. */
export async function contents(project: string, ref: string, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const found = await answer(
    api.POST("/api/v1/projects/{project}/files/fetch", {
      params: { path: { project } },
      body: { ref, limit: 1 },
    }),
  );
  const range = found.ranges[0];
  const blob = range?.blobs.find((one) => one.hash === found.files[0]?.hash);
  if (!range || !blob || blob.size === 0) return new Uint8Array();
  const first = range.start + blob.offset;
  const headers = { Range: `bytes=${first}-${first + Math.min(most, blob.size) - 1}` };
  const response = await fetch(range.url, { headers });
  if (!response.ok) throw new Problem(response.status, "download", "The file could not be read: try again.");
  return new Uint8Array(await response.arrayBuffer());
}

/** The text of these bytes, or null if they are no UTF-8. A character cut in two at the end is left out. */
export function readable(data: Uint8Array): string | null {
  for (let cut = 0; cut < 4; cut++) {
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(data.subarray(0, data.length - cut));
      return text.includes("\0") ? null : text;
    } catch {
      continue;
    }
  }
  return null;
}

/** The folders above a path, from the root down. */
export function trail(path: string): { name: string; path: string }[] {
  const parts = path.split("/").filter(Boolean);
  return parts.map((name, i) => ({ name, path: `/${parts.slice(0, i + 1).join("/")}/` }));
}

/** What a folder's address means: a folder of the lake, or of one version of a file set (`/stars/@sky:1`). */
export function folderOf(address: string): { path: string; set: string | null } {
  const found = /^(.*)@([^/@]+)$/.exec(address);
  return found ? { path: found[1] || "/", set: found[2]! } : { path: address, set: null };
}

/** The address of a folder in the same lake or set. */
export function folderIn(set: string | null, path: string): string {
  return set === null ? path : `${path.endsWith("/") ? path : `${path}/`}@${set}`;
}

/** Where a dropped file goes: below the open folder, with the folders that it was dropped with. */
export function targetOf(folder: string, path: string): string {
  return `${folder.endsWith("/") ? folder : `${folder}/`}${path}`;
}

const IMAGES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  svg: "image/svg+xml",
  bmp: "image/bmp",
};
const TABLES: Record<string, string> = { csv: ",", tsv: "\t" };

export type Look = { as: "image"; type: string } | { as: "table"; delimiter: string } | { as: "text" };

/** How a file is shown, by its name. What claims to be text and is not is told apart when it is read. */
export function lookOf(path: string): Look {
  const ending = path.split(".").pop()?.toLowerCase() ?? "";
  if (ending in IMAGES) return { as: "image", type: IMAGES[ending]! };
  if (ending in TABLES) return { as: "table", delimiter: TABLES[ending]! };
  return { as: "text" };
}

/** One line of the search builder. */
export type Condition = { key: string; operator: string; value: string };

/** The query language's text for the builder's lines. */
export function queryOf(conditions: Condition[]): string {
  return conditions
    .filter(({ key, value }) => key.trim() && value.trim())
    .map(({ key, operator, value }) => `${key.trim()} ${operator} ${quoted(key.trim(), value.trim())}`)
    .join(" and ");
}

/** Without quotes 007 would be a number, and a name is none. */
function quoted(key: string, value: string): string {
  const plain = /^[\w.+-]+$/.test(value) && !/(^|\.)(name|creator|hash)$/.test(key);
  return plain ? value : JSON.stringify(value);
}
