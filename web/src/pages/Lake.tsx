import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState, type DragEvent } from "react";
import { Link, useSearchParams } from "react-router";
import { targetOf, trail, upload, useFolder, type Progress } from "../api/lake";
import { Failure } from "../ui/Failure";
import { FilePanel } from "../ui/FilePanel";
import { bytes, count } from "../ui/format";
import { useProject } from "../ui/Frame";
import { LakeTabs } from "../ui/LakeTabs";
import { Loaded } from "../ui/Loaded";

/** Folders and files; the address says which folder and which file is open. */
export default function Lake() {
  const project = useProject();
  const [address] = useSearchParams();
  const folder = address.get("in") ?? "/";
  const file = address.get("file");
  const listing = useFolder(project, folder);
  const to = (values: Record<string, string>) => `?${new URLSearchParams(values).toString()}`;
  return (
    <>
      <LakeTabs />
      <Drop project={project} folder={folder} />
      <nav aria-label="Folders" className="trail">
        <Link to={to({ in: "/" })}>lake</Link>
        {trail(folder).map((part) => (
          <span key={part.path}>
            {" / "}
            <Link to={to({ in: part.path })} dir="auto">
              {part.name}
            </Link>
          </span>
        ))}
      </nav>
      <div className="columns">
        <Loaded query={listing}>
          {(page) => (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col" className="number">
                      Version
                    </th>
                    <th scope="col" className="number">
                      Size
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {page.items.map((item) => {
                    const isFolder = item.path.endsWith("/");
                    const name = item.path.split("/").filter(Boolean).pop() ?? item.path;
                    return (
                      <tr key={item.path}>
                        <td className="long">
                          <Link
                            dir="auto"
                            to={isFolder ? to({ in: item.path }) : to({ in: folder, file: item.path })}
                            aria-current={item.path === file ? "true" : undefined}
                          >
                            {name}
                            {isFolder && "/"}
                          </Link>
                        </td>
                        <td className="number">{item.version ?? ""}</td>
                        <td className="number">{item.size == null ? "" : bytes(item.size)}</td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
              {page.items.length === 0 && <p className="quiet">Empty: drop files above.</p>}
              {page.next_cursor && <p className="quiet">The first {count(page.items.length)}.</p>}
            </div>
          )}
        </Loaded>
        {file && <FilePanel key={file} project={project} path={file} />}
      </div>
    </>
  );
}

function Drop({ project, folder }: { project: string; folder: string }) {
  const queries = useQueryClient();
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const [progress, setProgress] = useState<Progress | null>(null);
  const send = useMutation({
    mutationFn: (files: File[]) =>
      upload(project, files.map((file) => ({ path: targetOf(folder, file), file })), setProgress),
    onSettled: () => {
      setProgress(null);
      return queries.invalidateQueries({ queryKey: [project, "files"] });
    },
  });
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    const files = [...event.dataTransfer.files];
    if (files.length > 0) send.mutate(files);
  }
  return (
    <>
      <div
        className={over ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <span>Drop files here, into {folder}, or</span>
        <button type="button" disabled={send.isPending} onClick={() => picker.current?.click()}>
          Choose files
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            const files = [...(event.target.files ?? [])];
            event.target.value = "";
            if (files.length > 0) send.mutate(files);
          }}
        />
        {progress && (
          <label className="gauge">
            {progress.phase} {bytes(progress.done)} of {bytes(progress.total)}
            <progress max={progress.total || 1} value={progress.done} />
          </label>
        )}
        {send.isSuccess && <span role="status">Uploaded.</span>}
      </div>
      {send.error && <Failure error={send.error} />}
    </>
  );
}
