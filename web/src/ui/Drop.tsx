import { useRef, useState, type DragEvent, type ReactNode } from "react";
import type { Progress } from "../api/lake";
import { bytes } from "./format";

export type Dropped = { path: string; file: File };

/** A place for files and whole folders: dropped, or chosen with the keyboard. */
export function Drop(props: {
  busy: boolean;
  progress: Progress | null;
  folders?: boolean;
  onFiles: (files: Dropped[]) => void;
  children: ReactNode;
}) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const chosen = (found: FileList | null) => {
    const all = [...(found ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
    if (all.length > 0) props.onFiles(all);
  };
  async function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    const found = await filesOf(event.dataTransfer.items);
    if (found.length > 0) props.onFiles(found);
  }
  const picker = (ref: typeof files, label: string, extra: Record<string, string>) => (
    <input
      ref={ref}
      type="file"
      multiple
      hidden
      aria-label={label}
      {...extra}
      onChange={(event) => {
        chosen(event.target.files);
        event.target.value = "";
      }}
    />
  );
  return (
    <div
      className={over ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => void drop(event)}
    >
      {props.children}
      <button type="button" disabled={props.busy} onClick={() => files.current?.click()}>
        Choose files
      </button>
      {picker(files, "Files to upload", {})}
      {props.folders && (
        <>
          <button type="button" disabled={props.busy} onClick={() => folder.current?.click()}>
            Choose a folder
          </button>
          {picker(folder, "Folder to upload", { webkitdirectory: "" })}
        </>
      )}
      {props.progress && (
        <label className="gauge">
          {props.progress.phase}{" "}
          {props.progress.total > 1 && `${bytes(props.progress.done)} of ${bytes(props.progress.total)}`}
          <progress max={props.progress.total || 1} value={props.progress.done} />
        </label>
      )}
    </div>
  );
}

/** Dropped folders are walked; a file's path begins with the folder that was dropped. */
async function filesOf(items: DataTransferItemList): Promise<Dropped[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map(walk))).flat();
}

async function walk(entry: FileSystemEntry): Promise<Dropped[]> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: Dropped[] = [];
  for (;;) {
    // A reader gives a hundred at a time, and nothing when there are no more.
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) return found;
    found.push(...(await Promise.all(some.map(walk))).flat());
  }
}
