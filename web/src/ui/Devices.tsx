import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { answer, api, type Device, type Job } from "../api/client";
import { poolWords, heldOf, usePool, type DeviceUse } from "../api/pool";
import { Failure } from "./Failure";
import { memory, plural } from "./format";
import { Loaded } from "./Loaded";
import { jobPlace } from "./places";
import { gpuWords } from "./gpus";
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
  const project = useParams().project ?? "";
  const pool = usePool(project);
  return (
    <Loaded query={devices}>
      {(found) =>
        found.length === 0 ? (
          <p className="quiet">
            No device is connected: start one with <code>easel worker</code>.
          </p>
        ) : (
          <>
            {pool.data && <p className="quiet">{poolWords(pool.data, found)}</p>}
            <div className="cards">
              {found.map((device) => (
                <DeviceCard
                  key={device.name}
                  device={device}
                  drains={drains}
                  use={running && heldOf(pool.data, device.name)}
                  jobs={running?.filter((job) => job.device === device.name) ?? []}
                />
              ))}
            </div>
          </>
        )
      }
    </Loaded>
  );
}

const MOST_NAMED = 5;

function DeviceCard({
  device,
  use,
  jobs,
  drains,
}: {
  device: Device;
  use: DeviceUse | undefined;
  jobs: Job[];
  drains: boolean;
}) {
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
      {device.gpus > 0 && <Gpus device={device} />}
      {device.drain && <Draining drain={device.drain} />}
      {use ? <Used device={device} use={use} jobs={jobs} /> : <p className="quiet">{sizeOf(device)}</p>}
      {drains && device.connected && <Drain device={device} />}
      {drains && !device.connected && <Remove device={device} />}
    </article>
  );
}

/** What its GPUs are, how busy the driver says each is, how much of them jobs hold, or why they get no work. */
function Gpus({ device }: { device: Device }) {
  return (
    <>
      <p className="quiet">{gpuWords(device)}</p>
      {device.gpu_fault && <p role="alert">{device.gpu_fault}</p>}
      {(device.gpu_use ?? []).map((one) => (
        <p key={one.number} className="quiet">
          GPU {one.number}: {one.use}
        </p>
      ))}
    </>
  );
}

function Draining({ drain }: { drain: NonNullable<Device["drain"]> }) {
  const left = `${plural(drain.running, "job")} left`;
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

/** For platform admins: a machine that will not come back. */
function Remove({ device }: { device: Device }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      answer(api.DELETE("/api/v1/devices/{device}", { params: { path: { device: device.name } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["devices"] }),
  });
  return (
    <>
      <button type="button" disabled={remove.isPending} onClick={() => remove.mutate()}>
        Remove for good
      </button>
      {remove.error && <Failure error={remove.error} />}
    </>
  );
}

function sizeOf(device: Device): string {
  const gpus = device.gpus > 0 ? `, ${device.gpus} GPU` : "";
  return `${device.vcpu} vCPU, ${memory(device.memory_mb)}${gpus}`;
}

/** What this project holds of a device and, greyed, what all others do. A job that is launching still waits for its room. */
function Used({ device, use, jobs }: { device: Device; use: DeviceUse; jobs: Job[] }) {
  const project = useParams().project ?? "";
  const holding = jobs.filter((job) => job.state !== "launching");
  const waiting = jobs.length - holding.length;
  return (
    <>
      {waiting > 0 && <p className="quiet">{plural(waiting, "job waits", "jobs wait")} for room here</p>}
      <Gauge label="vCPU" mine={use.mine.vcpu} others={use.others.vcpu} of={device.vcpu} show={String} />
      <Gauge
        label="Memory"
        mine={use.mine.memory_mb}
        others={use.others.memory_mb}
        of={device.memory_mb}
        show={memory}
      />
      {device.gpus > 0 && (
        <Gauge label="GPU" mine={use.mine.gpus} others={use.others.gpus} of={device.gpus} show={String} />
      )}
      {holding.length > 0 && (
        <ul className="names" aria-label={`Running on ${device.name}`}>
          {holding.slice(0, MOST_NAMED).map((job) => (
            <li key={job.id} className="clip">
              <Link dir="auto" to={jobPlace(project, job.id)}>
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

type GaugeProps = {
  label: string;
  mine: number;
  others: number;
  of: number;
  show: (value: number) => string;
};

/** A bar in two parts: this project's share in colour, everybody else's in grey. */
export function Gauge({ label, mine, others, of, show }: GaugeProps) {
  const part = (value: number) => `${of > 0 ? Math.min(100, (100 * value) / of) : 0}%`;
  const told = `${show(mine)}${others > 0 ? ` and ${show(others)} by others` : ""} of ${show(of)}`;
  return (
    <div className="gauge">
      <span>
        {label} <span className="figure">{told}</span>
      </span>
      <div className="shares" role="img" aria-label={`${label}: ${told} in use`}>
        <span className="mine" style={{ width: part(mine) }} />
        <span className="others" style={{ width: part(others) }} />
      </div>
    </div>
  );
}

export function resourcesOf(job: Job): Record<string, unknown> {
  const found = job.spec.resources;
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}
