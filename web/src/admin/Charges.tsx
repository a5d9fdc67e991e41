import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { answer, api } from "../api/client";
import { money } from "../api/spending";
import { thisMonth } from "../spending/figures";
import { count, figure } from "../ui/format";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** What to charge whom for a month; or what GPUs came to while they were held idle. */
export function Charges() {
  const [month, setMonth] = useState(thisMonth(new Date()));
  const [idle, setIdle] = useState(false);
  const charges = useQuery({
    queryKey: ["chargeback", month, idle],
    queryFn: () =>
      answer(api.GET("/api/v1/bills/chargeback", { params: { query: { month, idle_gpus: idle } } })),
    enabled: month !== "",
  });
  const file = (form: string) =>
    `/api/v1/bills/chargeback/${form}?${new URLSearchParams({ month, idle_gpus: String(idle) }).toString()}`;
  return (
    <section>
      <h2>Charges</h2>
      <div className="row">
        <label>
          Month
          <input type="month" required value={month} onChange={(e) => setMonth(e.target.value)} />
        </label>
        <label className="check">
          <input type="checkbox" checked={idle} onChange={(e) => setIdle(e.target.checked)} />
          only GPUs while they were held idle
        </label>
        <a href={file("csv")}>CSV</a>
        <a href={file("pdf")}>PDF</a>
      </div>
      <Loaded query={charges}>
        {(found) =>
          found.items.length === 0 ? (
            <p className="quiet">Nothing in that month.</p>
          ) : (
            <div className="scroll" tabIndex={0} role="region" aria-label="Charges of the month">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Project</th>
                    <th scope="col">Person</th>
                    <th scope="col" className="number">
                      Jobs
                    </th>
                    <th scope="col" className="number">
                      {idle ? "GPU-hours held" : "Hours"}
                    </th>
                    <th scope="col" className="number">
                      {idle ? "of them idle" : "GPU-hours"}
                    </th>
                    <th scope="col" className="number">
                      Amount{idle && " of that"}
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.items.map((line) => (
                    <tr key={`${line.project} ${line.user} ${line.currency}`}>
                      <td>{line.project}</td>
                      <td>{line.user}</td>
                      <td className="number">
                        {count(line.jobs)}
                        {line.running_jobs ? `, ${count(line.running_jobs)} of them running` : ""}
                      </td>
                      <td className="number">{figure(line.held_gpu_hours ?? line.hours)}</td>
                      <td className="number">{figure(line.gpu_hours)}</td>
                      <td className="number">{money(line.amount, line.currency)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      {idle && <IdleNow />}
    </section>
  );
}

/** Jobs that run and whose GPUs were idle for some of their time. */
function IdleNow() {
  const now = useQuery({
    queryKey: ["idle-gpus"],
    queryFn: () => answer(api.GET("/api/v1/bills/idle-gpus")),
    refetchInterval: 15_000,
  });
  return (
    <>
      <h3>Running now</h3>
      <Loaded query={now}>
        {(found) =>
          found.items.length === 0 ? (
            <p className="quiet">No job holds a GPU for nothing.</p>
          ) : (
            <div className="scroll" tabIndex={0} role="region" aria-label="Jobs that hold idle GPUs now">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Job</th>
                    <th scope="col">Project</th>
                    <th scope="col">Person</th>
                    <th scope="col">Device</th>
                    <th scope="col" className="number">
                      GPUs
                    </th>
                    <th scope="col">Since</th>
                    <th scope="col" className="number">
                      GPU-hours held
                    </th>
                    <th scope="col" className="number">
                      of them idle
                    </th>
                    <th scope="col" className="number">
                      Amount of that
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.items.map((one) => (
                    <tr key={one.job}>
                      <td className="long" dir="auto">
                        <Link to={`/p/${encodeURIComponent(one.project)}/jobs/${one.job}`}>{one.name}</Link>
                      </td>
                      <td>{one.project}</td>
                      <td>{one.user}</td>
                      <td>{one.device ?? "–"}</td>
                      <td className="number">{figure(one.gpus)}</td>
                      <td>
                        <Time at={one.since} />
                      </td>
                      <td className="number">{figure(one.held_gpu_hours)}</td>
                      <td className="number">{figure(one.idle_gpu_hours)}</td>
                      <td className="number">{money(one.amount, one.currency)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </>
  );
}
