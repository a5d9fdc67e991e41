import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { folderIn, folderOf, targetOf, trail, upload, useFolder, type Progress } from "../api/lake";
import { Drop, type Dropped } from "../ui/Drop";
import { Failure } from "../ui/Failure";
import { FilePanel } from "../ui/FilePanel";
import { bytes, count } from "../ui/format";
import { useProject } from "../ui/Frame";
import { LakeTabs } from "../ui/LakeTabs";
import { Loaded } from "../ui/Loaded";
import { DataLink } from "../ui/places";

/** Folders and files; the address says which folder and which file is open. */
export default function Lake() {
  const project = useProject();
  const [address] = useSearchParams();
  const folder = address.get("in") ?? "/";
  const file = address.get("file");
  const { path, set } = folderOf(folder);
  const base = `/api/v1/projects/${encodeURIComponent(project)}/files`;
  const listing = useFolder(project, folder);
  const to = (values: Record<string, string>) => `?${new URLSearchParams(values).toString()}`;
  return (
    <>
      <LakeTabs />
      {set === null ? (
        <Uploads project={project} folder={folder} />
      ) : (
        <p className="quiet">
          What <DataLink project={project} reference={set} /> holds: a version of a set does not change.
        </p>
      )}
      <nav aria-label="Folders" className="trail">
        <Link to={to({ in: "/" })}>lake</Link>
        {set !== null && (
          <span>
            {" / "}
            <Link to={to({ in: folderIn(set, "/") })} dir="auto">
              @{set}
            </Link>
          </span>
        )}
        {trail(path).map((part) => (
          <span key={part.path}>
            {" / "}
            <Link to={to({ in: folderIn(set, part.path) })} dir="auto">
              {part.name}
            </Link>
          </span>
        ))}{" "}
        <a href={`${base}/zip?${new URLSearchParams({ ref: folder }).toString()}`} download>
          Download as zip
        </a>
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
                            to={
                              isFolder
                                ? to({ in: folderIn(set, item.path) })
                                : to({
                                    in: folder,
                                    file: item.path,
                                    ...(set !== null && { version: String(item.version) }),
                                  })
                            }
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
              {page.items.length === 0 && (
                <p className="quiet">{set === null ? "Empty: drop files above." : "Empty."}</p>
              )}
              {page.next_cursor && <p className="quiet">The first {count(page.items.length)}.</p>}
            </div>
          )}
        </Loaded>
        {file && (
          <FilePanel
            key={`${file} ${address.get("version") ?? ""}`}
            project={project}
            path={file}
            first={Number(address.get("version")) || null}
          />
        )}
      </div>
    </>
  );
}

function Uploads({ project, folder }: { project: string; folder: string }) {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Progress | null>(null);
  const send = useMutation({
    mutationFn: (files: Dropped[]) =>
      upload(
        project,
        files.map(({ path, file }) => ({ path: targetOf(folder, path), file })),
        setProgress,
      ),
    onSettled: () => {
      setProgress(null);
      return queries.invalidateQueries({ queryKey: [project, "files"] });
    },
  });
  return (
    <>
      <Drop folders busy={send.isPending} progress={progress} onFiles={(files) => send.mutate(files)}>
        <span>Drop files or folders here, into {folder}, or</span>
      </Drop>
      {send.isSuccess && <p role="status">Uploaded.</p>}
      {send.error && <Failure error={send.error} />}
    </>
  );
}
