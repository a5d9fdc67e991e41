import { useQuery } from "@tanstack/react-query";
import { answer, api, type Device, type Job } from "../api/client";
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

/** The pool; `running` says what of this project runs where. */
export function DeviceTable({ running = [] }: { running?: Job[] }) {
  const devices = useDevices();
  return (
    <Loaded query={devices}>
      {(found) =>
        found.length === 0 ? (
          <p className="quiet">No device is connected: start one with easel worker.</p>
        ) : (
          <div className="cards">
            {found.map((device) => (
              <DeviceCard key={device.name} device={device} jobs={running.filter((j) => j.device === device.name)} />
            ))}
          </div>
        )
      }
    </Loaded>
  );
}

function DeviceCard({ device, jobs }: { device: Device; jobs: Job[] }) {
  const used = (name: string) => jobs.reduce((sum, job) => sum + Number(resourcesOf(job)[name] ?? 0), 0);
  return (
    <article className="card">
      <h3 className="long">{device.name}</h3>
      <p className="quiet">
        {device.executor} · {device.connected ? "connected" : <>gone, seen <Time at={device.seen_at} /></>}
      </p>
      <p className="quiet">This project uses</p>
      <Gauge label="vCPU" used={used("vcpu")} of={device.vcpu} show={String} />
      <Gauge label="Memory" used={used("memory_mb")} of={device.memory_mb} show={memory} />
      {device.gpus > 0 && <Gauge label="GPU" used={used("gpus")} of={device.gpus} show={String} />}
    </article>
  );
}

function Gauge(props: { label: string; used: number; of: number; show: (value: number) => string }) {
  return (
    <label className="gauge">
      <span>
        {props.label} <span className="figure">{props.show(props.used)} of {props.show(props.of)}</span>
      </span>
      <meter min={0} max={props.of} value={props.used} />
    </label>
  );
}

export function resourcesOf(job: Job): Record<string, unknown> {
  const found = job.spec.resources;
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}
