import { useQuery } from "@tanstack/react-query";
import {
  Background,
  Controls,
  Handle,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type Node,
  type NodeProps,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useEffect, useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { answer, api, type Schemas } from "../api/client";
import { farChoice, farOption } from "../graph/far";
import { useLayout, useLayouter } from "../graph/useLayout";
import { kindOf, nameOfEdge, titleOf } from "../graph/labels";
import { NODE, visible } from "../graph/visible";
import { plural } from "../ui/format";
import { Failure } from "../ui/Failure";
import { useProject } from "../ui/Frame";
import { Picture } from "../ui/Picture";
import { Tags } from "../ui/Tags";
import { Time } from "../ui/Time";

type Found = Schemas["Node"];
type Box = Node<{ found: Found; collapsed: boolean }, "set">;
const MOST = 2000;
/** Beyond this many, sets are dots on a canvas until fewer are traced. */
const MOST_BOXES = 300;
/** So many are proposed as somebody types: nobody reads through more, and each is an element. */
const MOST_NAMES = 200;

/** File sets in layers, joined by the jobs that made one from another. The address says where the trace begins. */
export default function Provenance() {
  return (
    <ReactFlowProvider>
      <Traced />
    </ReactFlowProvider>
  );
}

function Traced() {
  const project = useProject();
  const [address, setAddress] = useSearchParams();
  const from = address.get("from") ?? "";
  const direction = address.get("direction") === "forward" ? "forward" : "backward";
  const [start, setStart] = useState(from);
  useEffect(() => setStart(from), [from]);
  const graph = useQuery({
    queryKey: [project, "graph", from, direction],
    queryFn: () => {
      const query = { ref: from || undefined, direction, limit: MOST } as const;
      return answer(api.GET("/api/v1/projects/{project}/lineage", { params: { path: { project }, query } }));
    },
  });
  const ask = useLayouter();
  const trace = (ref: string, way: string) => setAddress(ref ? { from: ref, direction: way } : {});
  return (
    <div className="tall">
      <header className="head">
        <h1>Provenance</h1>
        <span className="quiet" role="status">
          {graph.data &&
            `${plural(graph.data.nodes.length, "file set")}${graph.data.next_cursor ? ", the first ones: trace from one" : ""}`}
        </span>
      </header>
      <form
        className="row"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          trace(start.trim(), direction);
        }}
      >
        <label className="wide">
          From file set
          <input
            list="sets"
            value={start}
            onChange={(e) => setStart(e.target.value)}
            placeholder="name:version, or empty for all"
          />
          <datalist id="sets">
            {graph.data?.nodes.slice(0, MOST_NAMES).map((node) => (
              <option key={node.id} value={node.id} />
            ))}
          </datalist>
        </label>
        <label>
          Direction
          <select value={direction} onChange={(e) => trace(start.trim(), e.target.value)}>
            <option value="backward">what it was made from</option>
            <option value="forward">what was made of it</option>
          </select>
        </label>
        <button type="submit">Trace</button>
      </form>
      {graph.error && <Failure error={graph.error} again={() => void graph.refetch()} />}
      {graph.data && (
        <Drawn key={from + direction} project={project} graph={graph.data} ask={ask} onTrace={trace} />
      )}
    </div>
  );
}

type DrawnProps = {
  project: string;
  graph: Schemas["Graph"];
  ask: ReturnType<typeof useLayouter>;
  onTrace: (ref: string, way: string) => void;
};

function Drawn({ project, graph, ask, onTrace }: DrawnProps) {
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<string | null>(null);
  const flow = useReactFlow();
  const ids = useMemo(() => graph.nodes.map((node) => node.id), [graph]);
  const shown = useMemo(() => visible(ids, graph.edges, collapsed), [ids, graph, collapsed]);
  const drawn = useMemo(() => ids.filter((id) => shown.has(id)), [ids, shown]);
  const { places, busy } = useLayout(ask, drawn, graph.edges);
  const far = drawn.length > MOST_BOXES;
  const dots = useMemo(
    () => (far ? farOption(drawn, graph.edges, places) : null),
    [far, drawn, graph, places],
  );
  const over = useMemo(
    () => (chosen === null ? undefined : { series: [farChoice(places.get(chosen))] }),
    [places, chosen],
  );
  const nodes = useMemo<Box[]>(
    () =>
      (far ? [] : graph.nodes)
        .filter((node) => shown.has(node.id) && places.has(node.id))
        .map((node) => ({
          id: node.id,
          type: "set",
          position: places.get(node.id)!,
          ...NODE,
          ariaLabel: `File set ${node.id}, ${kindOf(node)}`,
          data: { found: node, collapsed: collapsed.has(node.id) },
        })),
    [graph, far, shown, places, collapsed],
  );
  const edges = useMemo(
    () =>
      (far ? [] : graph.edges)
        .filter((edge) => places.has(edge.source) && places.has(edge.target))
        .map((edge) => ({
          id: `${edge.source} ${edge.target} ${edge.job ?? ""}`,
          source: edge.source,
          target: edge.target,
          className: edge.action,
          label: nameOfEdge(edge, graph.edges.length),
          ariaLabel: edge.job
            ? `${edge.target} made from ${edge.source} by ${edge.job_name ?? edge.job}`
            : `${edge.target} made of ${edge.source}`,
        })),
    [graph, far, places],
  );
  const ready = nodes.length > 0 && !busy && !far;
  const beside = chosen !== null;
  useEffect(() => {
    if (!ready) return;
    // After the frame in which the side panel took its share of the width.
    const frame = requestAnimationFrame(() => void flow.fitView({ maxZoom: 1, minZoom: 0.2, padding: 0.1 }));
    return () => cancelAnimationFrame(frame);
  }, [ready, beside, flow]);
  if (graph.nodes.length === 0)
    return <p className="quiet">No file sets yet: a job's output becomes one by itself.</p>;
  const node = graph.nodes.find((one) => one.id === chosen);
  return (
    <div className="graph">
      <div className="canvas" aria-busy={busy}>
        {dots ? (
          places.size > 0 && (
            <Picture
              title="Drag to move, turn the wheel to come closer; a dot is a file set"
              about={`${plural(drawn.length, "file set")} in layers; choose one by its name above to see fewer`}
              option={dots}
              over={over}
              height={Math.max(320, window.innerHeight - 270)}
              onPick={(i) => setChosen(drawn.filter((id) => places.has(id))[i] ?? null)}
            />
          )
        ) : (
          <ReactFlow
            nodes={nodes}
            edges={edges}
            nodeTypes={TYPES}
            onNodeClick={(_, clicked) => setChosen(clicked.id)}
            onSelectionChange={({ nodes: [first] }) => first && setChosen(first.id)}
            nodesDraggable={false}
            nodesConnectable={false}
            onlyRenderVisibleElements
            minZoom={0.05}
            proOptions={{ hideAttribution: true }}
          >
            <Background />
            <Controls showInteractive={false} />
          </ReactFlow>
        )}
      </div>
      {node && (
        <Side
          project={project}
          node={node}
          collapsed={collapsed.has(node.id)}
          onTrace={onTrace}
          onCollapse={() => {
            const next = new Set(collapsed);
            if (!next.delete(node.id)) next.add(node.id);
            setCollapsed(next);
          }}
        />
      )}
    </div>
  );
}

function SetNode({ data: { found, collapsed }, selected }: NodeProps<Box>) {
  return (
    <div
      className={`node ${selected ? "chosen" : ""} ${found.dropped ? "dropped" : ""} ${found.kind}`}
      title={`${found.id}, ${kindOf(found)}`}
    >
      <Handle type="target" position={Position.Left} />
      <span dir="auto">
        {titleOf(found)}
        {collapsed && " ⊞"}
      </span>
      <small dir="auto">
        {kindOf(found)} · <Time at={found.created_at} />
      </small>
      <Handle type="source" position={Position.Right} />
    </div>
  );
}

const TYPES = { set: SetNode };

type SideProps = {
  project: string;
  node: Found;
  collapsed: boolean;
  onTrace: (ref: string, way: string) => void;
  onCollapse: () => void;
};

function Side({ project, node, collapsed, onTrace, onCollapse }: SideProps) {
  const base = `/p/${encodeURIComponent(project)}`;
  return (
    <aside className="card" aria-label={`About ${node.id}`}>
      <h2 className="long">{node.id}</h2>
      <p className="quiet">
        {kindOf(node)}; {node.creator}, <Time at={node.created_at} />
        {node.dropped && ", bytes given up"}
      </p>
      {node.made_by && (
        <p className="long">
          Made by{" "}
          <Link dir="auto" to={`${base}/jobs/${encodeURIComponent(node.made_by)}`}>
            {node.made_by_name ?? node.made_by}
          </Link>{" "}
          <small className="quiet">…{node.made_by.slice(-6)}</small>
        </p>
      )}
      {node.app && (
        <p>
          App{" "}
          <Link dir="auto" to={`${base}/apps/${encodeURIComponent(node.app)}`}>
            {node.app}
          </Link>
        </p>
      )}
      <p>
        <Link to={`${base}/lake?in=${encodeURIComponent(`/@${node.id}`)}`}>Browse its files</Link>
      </p>
      <div className="row">
        <button type="button" className="small" onClick={() => onTrace(node.id, "backward")}>
          Trace backward
        </button>
        <button type="button" className="small" onClick={() => onTrace(node.id, "forward")}>
          Trace forward
        </button>
        <button type="button" className="small" onClick={onCollapse}>
          {collapsed ? "Expand" : "Collapse"}
        </button>
      </div>
      <Tags key={node.id} project={project} kind="fileset" reference={node.id} />
    </aside>
  );
}
