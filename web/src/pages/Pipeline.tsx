import { useMutation, useQuery } from "@tanstack/react-query";
import {
  Background,
  Controls,
  Handle,
  Position,
  ReactFlow,
  ReactFlowProvider,
  type Node,
  type NodeProps,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { answer, api, type Schemas } from "../api/client";
import { useLayout, useLayouter } from "../graph/useLayout";
import { NODE } from "../graph/visible";
import { needsOf } from "../graph/steps";
import { Failure } from "../ui/Failure";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { DataLink, jobPlace, pipelinePlace } from "../ui/places";
import { State } from "../ui/State";
import { Time } from "../ui/Time";
import { useTitle } from "../ui/title";

type Facts = Schemas["Pipeline"];
type Step = Schemas["PipelineStep"];
type Box = Node<{ step: Step }, "step">;

export default function Pipeline() {
  const project = useProject();
  const id = useParams().pipeline ?? "";
  const found = useQuery({
    queryKey: [project, "job", "pipelines", id],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}", {
          params: { path: { project, pipeline: id } },
        }),
      ),
  });
  return (
    <Loaded query={found}>
      {(one) => (
        <ReactFlowProvider>
          <Shown key={id} project={project} pipeline={one} />
        </ReactFlowProvider>
      )}
    </Loaded>
  );
}

function Shown({ project, pipeline }: { project: string; pipeline: Facts }) {
  const navigate = useNavigate();
  useTitle(pipeline.name);
  const rerun = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/pipelines/{pipeline}/rerun", {
          params: { path: { project, pipeline: pipeline.id } },
          body: {},
        }),
      ),
    onSuccess: (made) => navigate(pipelinePlace(project, made.id)),
  });
  return (
    <div className="tall">
      <header className="head">
        <h1 className="long" dir="auto">
          {pipeline.name}
        </h1>
        <span className={`state ${pipeline.state}`}>{pipeline.state}</span>
        <span className="quiet">
          <Time at={pipeline.created_at} />
        </span>
        <span className="spring" />
        {pipeline.parent_id && <Link to={pipelinePlace(project, pipeline.parent_id)}>Rerun of another</Link>}
        <button type="button" disabled={rerun.isPending} onClick={() => rerun.mutate()}>
          Run again
        </button>
      </header>
      {rerun.error && <Failure error={rerun.error} />}
      <Drawn project={project} pipeline={pipeline} />
      <h2>Steps</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="All steps">
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">State</th>
              <th scope="col">Needs</th>
              <th scope="col">Output</th>
              <th scope="col">Reason</th>
            </tr>
          </thead>
          <tbody>
            {pipeline.steps.map((step) => (
              <tr key={step.name}>
                <td>
                  <Link dir="auto" to={jobPlace(project, step.job_id)}>
                    {step.name}
                  </Link>
                </td>
                <td>
                  <State state={step.state} /> {step.reused && <span className="tag">reused</span>}
                </td>
                <td dir="auto">{step.needs.join(", ") || "–"}</td>
                <td>{step.output_set ? <DataLink project={project} reference={step.output_set} /> : "–"}</td>
                <td className="long" dir="auto">
                  {step.reason ?? ""}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Drawn({ project, pipeline }: { project: string; pipeline: Facts }) {
  const navigate = useNavigate();
  const ask = useLayouter();
  const names = pipeline.steps.map((step) => step.name).join("\n");
  const [ids, edges] = useMemo(
    () => [names.split("\n"), needsOf(pipeline.steps)],
    // eslint-disable-next-line react-hooks/exhaustive-deps -- states change, the shape of a pipeline does not
    [names],
  );
  const { places, busy } = useLayout(ask, ids, edges);
  const nodes: Box[] = pipeline.steps
    .filter((step) => places.has(step.name))
    .map((step) => ({
      id: step.name,
      type: "step",
      position: places.get(step.name)!,
      ...NODE,
      ariaLabel: `Step ${step.name}, ${step.state}`,
      data: { step },
    }));
  return (
    <div className="graph" aria-busy={busy}>
      <div className="canvas">
        {nodes.length > 0 && (
          <ReactFlow
            nodes={nodes}
            edges={edges.map((edge) => ({ id: `${edge.source} ${edge.target}`, ...edge, className: "job" }))}
            nodeTypes={TYPES}
            fitView
            fitViewOptions={{ maxZoom: 1, minZoom: 0.2, padding: 0.1 }}
            minZoom={0.2}
            onNodeClick={(_, clicked) => {
              const step = pipeline.steps.find((one) => one.name === clicked.id);
              if (step) void navigate(jobPlace(project, step.job_id));
            }}
            nodesDraggable={false}
            nodesConnectable={false}
            proOptions={{ hideAttribution: true }}
          >
            <Background />
            <Controls showInteractive={false} />
          </ReactFlow>
        )}
      </div>
    </div>
  );
}

function StepNode({ data: { step } }: NodeProps<Box>) {
  return (
    <div className="node" title={step.name}>
      <Handle type="target" position={Position.Left} />
      <span dir="auto">
        {step.name} <State state={step.state} />
      </span>
      <Handle type="source" position={Position.Right} />
    </div>
  );
}

const TYPES = { step: StepNode };
