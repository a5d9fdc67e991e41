import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client";
import { money } from "../api/spending";
import { thisMonth } from "../spending/figures";
import { count, figure } from "../ui/format";
import { Loaded } from "../ui/Loaded";

/** What to charge whom for a month; or what GPUs came to that were held and never used. */
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
          only GPUs that were held and never used
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
                      Hours
                    </th>
                    <th scope="col" className="number">
                      GPU-hours
                    </th>
                    <th scope="col" className="number">
                      Amount
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.items.map((line) => (
                    <tr key={`${line.project} ${line.user} ${line.currency}`}>
                      <td>{line.project}</td>
                      <td>{line.user}</td>
                      <td className="number">{count(line.jobs)}</td>
                      <td className="number">{figure(line.hours)}</td>
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
    </section>
  );
}
