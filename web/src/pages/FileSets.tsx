import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ColumnDef } from "@tanstack/react-table";
import { useMemo, useState, type FormEvent } from "react";
import { Link, useSearchParams } from "react-router";
import { answer, api } from "../api/client";
import type { FileSet } from "../api/lake";
import { Dialog } from "../ui/Dialog";
import { Failure } from "../ui/Failure";
import { bytes, count, plural } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Grid } from "../ui/Grid";
import { LakeTabs } from "../ui/LakeTabs";
import { Loaded } from "../ui/Loaded";
import { DataLink } from "../ui/places";
import { Tags } from "../ui/Tags";
import { Time } from "../ui/Time";

export default function FileSets() {
  const project = useProject();
  const [address, setAddress] = useSearchParams();
  const [creating, setCreating] = useState(false);
  const prefix = address.get("prefix") ?? "";
  const open = address.get("set");
  const everything = address.get("all") === "yes";
  const automatic = everything || prefix.startsWith("job_");
  const list = useInfiniteQuery({
    queryKey: [project, "filesets", "list", prefix, automatic],
    initialPageParam: undefined as string | undefined,
    structuralSharing: false, // as in the list of jobs
    queryFn: ({ pageParam }) => {
      const query = { prefix, automatic, cursor: pageParam, limit: 100 };
      return answer(api.GET("/api/v1/projects/{project}/filesets", { params: { path: { project }, query } }));
    },
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const sets = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const columns = useMemo<ColumnDef<FileSet>[]>(
    () => [
      {
        id: "name",
        header: "File set",
        size: 320,
        cell: ({ row: { original: one } }) => (
          <Link className="clip" to={`?set=${encodeURIComponent(one.name)}`}>
            {one.name}:{one.version}
          </Link>
        ),
      },
      { id: "files", header: "Files", size: 90, cell: ({ row }) => count(row.original.files) },
      { id: "bytes", header: "Size", size: 90, cell: ({ row }) => bytes(row.original.bytes) },
      { id: "creator", header: "Owner", cell: ({ row }) => row.original.creator },
      { id: "made", header: "Made", size: 120, cell: ({ row }) => <Time at={row.original.created_at} /> },
    ],
    [],
  );
  return (
    <div className="tall">
      <LakeTabs />
      <form className="row" role="search" onSubmit={(event) => event.preventDefault()}>
        <label className="wide">
          Name begins with
          <input
            type="search"
            value={prefix}
            onChange={(e) => setAddress(e.target.value ? { prefix: e.target.value } : {}, { replace: true })}
          />
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={everything}
            onChange={(e) =>
              setAddress(
                { ...(prefix && { prefix }), ...(e.target.checked && { all: "yes" }) },
                { replace: true },
              )
            }
          />{" "}
          Outputs of jobs that nobody named
        </label>
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New file set
        </button>
      </form>
      {list.error && <Failure error={list.error} again={() => void list.refetch()} />}
      {list.data && sets.length === 0 && (
        <p className="quiet">
          None{automatic ? "" : " that somebody named"}. A job's output becomes one by itself.
        </p>
      )}
      {sets.length > 0 && (
        <Grid
          label="File sets"
          rows={sets}
          columns={columns}
          rowId={(one) => one.name}
          hasMore={list.hasNextPage}
          isFetching={list.isFetching}
          onMore={() => void list.fetchNextPage()}
        />
      )}
      {open && (
        <Dialog title={open} onClose={() => setAddress(prefix ? { prefix } : {})}>
          <Versions project={project} name={open} first={Number(address.get("version")) || null} />
        </Dialog>
      )}
      {creating && <NewSet project={project} onClose={() => setCreating(false)} />}
    </div>
  );
}

function Versions({ project, name, first }: { project: string; name: string; first: number | null }) {
  const [chosen, setChosen] = useState<number | null>(first);
  const base = `/p/${encodeURIComponent(project)}`;
  const versions = useQuery({
    queryKey: [project, "filesets", "versions", name],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/filesets/{name}/versions", {
          params: { path: { project, name } },
        }),
      ),
  });
  return (
    <Loaded query={versions}>
      {(page) => {
        const shown = page.items.find((one) => one.version === chosen) ?? page.items[0];
        if (!shown) return <p className="quiet">No versions.</p>;
        const ref = `${name}:${shown.version}`;
        return (
          <>
            <label>
              Version
              <select value={shown.version} onChange={(e) => setChosen(Number(e.target.value))}>
                {page.items.map((one) => (
                  <option key={one.version} value={one.version}>
                    {one.version}
                  </option>
                ))}
              </select>
            </label>
            <p>
              {plural(shown.files, "file")}, {bytes(shown.bytes)}, {shown.creator},{" "}
              <Time at={shown.created_at} />
            </p>
            {shown.sources.length > 0 && (
              <p className="quiet long">
                Made of{" "}
                {shown.sources.map((source, i) => (
                  <span key={source}>
                    {i > 0 && ", "}
                    <DataLink project={project} reference={source} />
                  </span>
                ))}
              </p>
            )}
            <p className="row">
              <Link className="button" to={`${base}/lake?in=${encodeURIComponent(`/@${ref}`)}`}>
                Browse
              </Link>
              <a
                className="button"
                href={`/api/v1/projects/${encodeURIComponent(project)}/files/zip?${new URLSearchParams({ ref: `/@${ref}` }).toString()}`}
                download
              >
                Download as zip
              </a>
              <Link className="button" to={`${base}/provenance?from=${encodeURIComponent(ref)}`}>
                Provenance
              </Link>
            </p>
            <Tags key={ref} project={project} kind="fileset" reference={ref} />
            {shown.version > 1 && (
              <Difference project={project} from={`${name}:${shown.version - 1}`} to={ref} />
            )}
          </>
        );
      }}
    </Loaded>
  );
}

function Difference({ project, from, to }: { project: string; from: string; to: string }) {
  const diff = useQuery({
    queryKey: [project, "filesets", "diff", from, to],
    queryFn: () => {
      const params = { path: { project, ref: from }, query: { to, limit: 200 } };
      return answer(api.GET("/api/v1/projects/{project}/filesets/{ref}/diff", { params }));
    },
  });
  return (
    <>
      <h3>Changed since {from}</h3>
      <Loaded query={diff}>
        {(page) => (
          <ul className="list">
            {page.items.map((one) => (
              <li key={one.path} className="long" dir="auto">
                {one.before === null
                  ? "added"
                  : one.after === null
                    ? "removed"
                    : `version ${one.before} → ${one.after}`}{" "}
                {one.path}
              </li>
            ))}
            {page.items.length === 0 && <li>Nothing.</li>}
          </ul>
        )}
      </Loaded>
    </>
  );
}

function NewSet({ project, onClose }: { project: string; onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [sources, setSources] = useState("/");
  const add = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/filesets", {
          params: { path: { project } },
          body: {
            name,
            sources: sources
              .split("\n")
              .map((line) => line.trim())
              .filter(Boolean),
          },
        }),
      ),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [project, "filesets"] });
      onClose();
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }
  return (
    <Dialog title="New file set" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label>
          Name of the set
          <input
            required
            maxLength={128}
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="HotpotQA"
          />
        </label>
        <label>
          Made of, one a line
          <textarea required rows={4} value={sources} onChange={(e) => setSources(e.target.value)} />
        </label>
        <p className="quiet">
          A folder /data/, a file /data/train.json:2, another set /@HotpotQA or a part of it.
        </p>
        {add.error && <Failure error={add.error} />}
        <button type="submit" className="primary" disabled={add.isPending}>
          Create
        </button>
      </form>
    </Dialog>
  );
}
