import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { answer, api, type Device, type Job } from "../api/client";
import { Failure } from "./Failure";
import { memory } from "./format";
import { Loaded } from "./Loaded";
import { Time } from "./Time";

export function useDevices() {
  return useQuery({
    queryKey: ["devices"],
    queryFn: () => answer(api.GET("/api/v1/devices")).then((found) => found.items),
    refetchInterval: 5_000, // devices come and go without an event
  });
}

/** Whether commands of users run there without a sandbox. */
export function isOpen(device: Device): boolean {
  return device.connected && device.notes.sandbox === "False";
}

/** The pool; `running` says what of a project runs where, if one is looked at. */
export function DeviceTable({ running, drains = false }: { running?: Job[]; drains?: boolean }) {
  const devices = useDevices();
  return (
    <Loaded query={devices}>
      {(found) =>
        found.length === 0 ? (
          <p className="quiet">No device is connected: start one with easel worker.</p>
        ) : (
          <div className="cards">
            {found.map((device) => (
              <DeviceCard
                key={device.name}
                device={device}
                drains={drains}
                jobs={running?.filter((job) => job.device === device.name)}
              />
            ))}
          </div>
        )
      }
    </Loaded>
  );
}

const MOST_NAMED = 5;

function DeviceCard({ device, jobs, drains }: { device: Device; jobs: Job[] | undefined; drains: boolean }) {
  return (
    <article className="card">
      <h3 className="long">{device.name}</h3>
      <p className="quiet">
        {device.executor} ·{" "}
        {device.connected ? (
          "connected"
        ) : (
          <>
            gone, seen <Time at={device.seen_at} />
          </>
        )}
      </p>
      {device.drain && <Draining drain={device.drain} />}
      {jobs ? <Used device={device} jobs={jobs} /> : <p className="quiet">{sizeOf(device)}</p>}
      {drains && <Drain device={device} />}
    </article>
  );
}

function Draining({ drain }: { drain: NonNullable<Device["drain"]> }) {
  const left = drain.running === 1 ? "1 job left" : `${drain.running} jobs left`;
  return (
    <p>
      <strong>{drain.running === 0 ? "Drained" : "Draining"}</strong>
      {drain.running > 0 && `: ${left}`}
      {drain.running > 0 && drain.by && (
        <>
          , stopped <Time at={drain.by} />
        </>
      )}
      {drain.reason && <span dir="auto"> · {drain.reason}</span>}
    </p>
  );
}

/** For platform admins: give a device no more work, or work again. */
function Drain({ device }: { device: Device }) {
  const queries = useQueryClient();
  const [hours, setHours] = useState("");
  const path = { params: { path: { device: device.name } } };
  const change = useMutation({
    mutationFn: () => {
      if (device.drain) return answer(api.DELETE("/api/v1/devices/{device}/drain", path));
      const by = hours === "" ? null : new Date(Date.now() + Number(hours) * 3_600_000).toISOString();
      return answer(api.PUT("/api/v1/devices/{device}/drain", { ...path, body: { by, reason: "" } }));
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["devices"] }),
  });
  if (device.executor === "ray" || device.executor === "slurm") return null;
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate();
      }}
    >
      {!device.drain && (
        <label>
          Stop what runs after (hours)
          <input
            type="number"
            min={0.1}
            step="any"
            placeholder="never"
            value={hours}
            onChange={(e) => setHours(e.target.value)}
          />
        </label>
      )}
      <button type="submit" disabled={change.isPending}>
        {device.drain ? "Open again" : "Drain"}
      </button>
      {change.error && <Failure error={change.error} />}
    </form>
  );
}

function sizeOf(device: Device): string {
  const gpus = device.gpus > 0 ? `, ${device.gpus} GPU` : "";
  return `${device.vcpu} vCPU, ${memory(device.memory_mb)}${gpus}`;
}

/** What one project holds of a device. A job that is launching still waits for its room. */
function Used({ device, jobs }: { device: Device; jobs: Job[] }) {
  const project = useParams().project ?? "";
  const holding = jobs.filter((job) => job.state !== "launching");
  const used = (name: string) => holding.reduce((sum, job) => sum + Number(resourcesOf(job)[name] ?? 0), 0);
  const waiting = jobs.length - holding.length;
  return (
    <>
      <p className="quiet">
        This project uses
        {waiting > 0 && `, while ${waiting} ${waiting === 1 ? "job waits" : "jobs wait"} for room`}
      </p>
      <Gauge label="vCPU" used={used("vcpu")} of={device.vcpu} show={String} />
      <Gauge label="Memory" used={used("memory_mb")} of={device.memory_mb} show={memory} />
      {device.gpus > 0 && <Gauge label="GPU" used={used("gpus")} of={device.gpus} show={String} />}
      {holding.length > 0 && (
        <ul className="names" aria-label={`Running on ${device.name}`}>
          {holding.slice(0, MOST_NAMED).map((job) => (
            <li key={job.id} className="clip">
              <Link dir="auto" to={`/p/${encodeURIComponent(project)}/jobs/${job.id}`}>
                {job.name}
              </Link>
            </li>
          ))}
          {holding.length > MOST_NAMED && <li className="quiet">and {holding.length - MOST_NAMED} more</li>}
        </ul>
      )}
    </>
  );
}

function Gauge(props: { label: string; used: number; of: number; show: (value: number) => string }) {
  return (
    <label className="gauge">
      <span>
        {props.label}{" "}
        <span className="figure">
          {props.show(props.used)} of {props.show(props.of)}
        </span>
      </span>
      <meter min={0} max={props.of} value={props.used} />
    </label>
  );
}

export function resourcesOf(job: Job): Record<string, unknown> {
  const found = job.spec.resources;
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}
