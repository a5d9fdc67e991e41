import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useSearchParams } from "react-router";
import { answer, api } from "../api/client";
import { money, useBudget } from "../api/spending";
import { useMembers } from "../api/members";
import { useMe } from "../session";
import { BudgetCard } from "../ui/BudgetCard";
import { count, duration } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { csvOf, save } from "../ui/save";
import { sumsOf, thisMonth } from "../spending/figures";
import { SetBudget } from "../spending/SetBudget";

const OverTime = lazy(() => import("../spending/OverTime"));

const GROUPS = ["user", "day", "month", "app", "job"] as const;

/** What the project's jobs came to, and how much they may. */
export default function Spending() {
  const project = useProject();
  const me = useMe();
  const members = useMembers(project);
  const budget = useBudget(project);
  const [address, setAddress] = useSearchParams();
  const by = GROUPS.find((one) => one === address.get("by")) ?? "user";
  const month = address.get("month") ?? (budget.data?.period === "total" ? "" : thisMonth(new Date()));
  const report = useQuery({
    queryKey: [project, "job", "bills", by, month],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/bills", {
          params: { path: { project }, query: { by, month: month || undefined } },
        }),
      ),
  });
  const set = (name: string, value: string) =>
    setAddress(
      (old) => {
        const next = new URLSearchParams(old);
        next.set(name, value);
        return next;
      },
      { replace: true },
    );
  const admin =
    me.user.platform_admin || members.data?.find((one) => one.id === me.user.id)?.role === "admin";
  return (
    <>
      <header className="head">
        <h1>Spending</h1>
      </header>
      <Loaded query={budget}>{(found) => <BudgetCard budget={found} />}</Loaded>
      {admin && budget.data && (
        <SetBudget
          key={`${budget.data.limit} ${budget.data.period} ${budget.data.hard_stop} ${budget.data.warn_at.join()}`}
          project={project}
          now={budget.data}
        />
      )}
      <h2>Bills</h2>
      <div className="row">
        <label>
          By
          <select value={by} onChange={(e) => set("by", e.target.value)}>
            {GROUPS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          Month
          <input type="month" value={month} onChange={(e) => set("month", e.target.value)} />
        </label>
        <button type="button" disabled={month === ""} onClick={() => set("month", "")}>
          All months
        </button>
        <span className="spring" />
        <button
          type="button"
          disabled={!report.data}
          onClick={() =>
            report.data &&
            save(
              `${project}-bills.csv`,
              csvOf([
                [by, "jobs", "hours", "amount", "currency"],
                ...report.data.items.map((one) => [one.group, one.jobs, one.hours, one.amount, one.currency]),
              ]),
            )
          }
        >
          Download CSV
        </button>
      </div>
      {budget.data && (
        <Suspense>
          <OverTime project={project} month={month} budget={budget.data} />
        </Suspense>
      )}
      <Loaded query={report}>
        {(found) =>
          found.items.length === 0 ? (
            <p className="quiet">Nothing was billed yet.</p>
          ) : (
            <div className="scroll" tabIndex={0} role="region" aria-label="Sums of the bills">
              <table>
                <thead>
                  <tr>
                    <th scope="col">{by}</th>
                    <th scope="col" className="number">
                      Jobs
                    </th>
                    <th scope="col" className="number">
                      Ran
                    </th>
                    <th scope="col" className="number">
                      Amount
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.items.map((item) => (
                    <tr key={item.group + item.currency}>
                      <td className="long" dir="auto">
                        {item.group || "–"}
                      </td>
                      <td className="number">{count(item.jobs)}</td>
                      <td className="number">{duration(3600 * item.hours)}</td>
                      <td className="number">{money(item.amount, item.currency)}</td>
                    </tr>
                  ))}
                </tbody>
                <tfoot>
                  {sumsOf(found.items).map((sum) => (
                    <tr key={sum.currency}>
                      <th scope="row">All of these</th>
                      <td />
                      <td className="number">{duration(3600 * sum.hours)}</td>
                      <td className="number">{money(sum.amount, sum.currency)}</td>
                    </tr>
                  ))}
                </tfoot>
              </table>
            </div>
          )
        }
      </Loaded>
    </>
  );
}
