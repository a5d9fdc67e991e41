import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useSearchParams } from "react-router";
import { answer, api } from "../api/client";
import { money, useBudget, type Budget } from "../api/spending";
import { useMembers } from "../api/members";
import { useMe } from "../session";
import { BudgetCard } from "../ui/BudgetCard";
import { Failure } from "../ui/Failure";
import { count, figure } from "../ui/format";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { csvOf, save } from "../ui/save";

const GROUPS = ["user", "month", "app", "job"] as const;

/** As the API writes months, in UTC as bills are. */
export function thisMonth(now: Date): string {
  return now.toISOString().slice(0, 7);
}

/** What all rows come to: the same as "billed" in the card above, for the same period. */
export function sumsOf(items: { hours: number; amount: number; currency: string }[]) {
  const sums = new Map<string, { currency: string; hours: number; amount: number }>();
  for (const { hours, amount, currency } of items) {
    const sum = sums.get(currency) ?? { currency, hours: 0, amount: 0 };
    sums.set(currency, { currency, hours: sum.hours + hours, amount: sum.amount + amount });
  }
  return [...sums.values()];
}

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
                      Hours
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
                      <td className="number">{figure(item.hours)}</td>
                      <td className="number">{money(item.amount, item.currency)}</td>
                    </tr>
                  ))}
                </tbody>
                <tfoot>
                  {sumsOf(found.items).map((sum) => (
                    <tr key={sum.currency}>
                      <th scope="row">All of these</th>
                      <td />
                      <td className="number">{figure(sum.hours)}</td>
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

/** What the form begins with: what holds now, so that changing one thing leaves the rest; else a hard stop. */
export function budgetForm(now: Pick<Budget, "limit" | "period" | "hard_stop" | "warn_at">) {
  return {
    limit: now.limit === null ? "" : String(now.limit),
    period: now.period === "total" ? ("total" as const) : ("month" as const),
    stop: now.limit === null ? true : now.hard_stop,
    warnAt: now.limit === null ? [0.5, 0.8, 1] : now.warn_at,
  };
}

function SetBudget({ project, now }: { project: string; now: Budget }) {
  const queries = useQueryClient();
  const begin = budgetForm(now);
  const [limit, setLimit] = useState(begin.limit);
  const [period, setPeriod] = useState<"month" | "total">(begin.period);
  const [stop, setStop] = useState(begin.stop);
  const again = () => queries.invalidateQueries({ queryKey: [project, "job", "budget"] });
  const params = { path: { project } };
  const set = useMutation({
    mutationFn: () =>
      answer(
        api.PUT("/api/v1/projects/{project}/budget", {
          params,
          body: { limit: Number(limit), period, hard_stop: stop, warn_at: begin.warnAt },
        }),
      ),
    onSuccess: again,
  });
  const remove = useMutation({
    mutationFn: () => answer(api.DELETE("/api/v1/projects/{project}/budget", { params })),
    onSuccess: again,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    set.mutate();
  }
  return (
    <>
      <form className="row" onSubmit={submit}>
        <label>
          Limit
          <input
            required
            type="number"
            min="0"
            step="any"
            value={limit}
            onChange={(e) => setLimit(e.target.value)}
          />
        </label>
        <label>
          Period
          <select value={period} onChange={(e) => setPeriod(e.target.value as typeof period)}>
            <option value="month">a month</option>
            <option value="total">in all</option>
          </select>
        </label>
        <label className="check">
          <input type="checkbox" checked={stop} onChange={(e) => setStop(e.target.checked)} /> Stop jobs at
          the limit
        </label>
        <button type="submit" disabled={set.isPending}>
          Set the budget
        </button>
        <button type="button" onClick={() => remove.mutate()}>
          No limit
        </button>
      </form>
      {(set.error ?? remove.error) && <Failure error={set.error ?? remove.error} />}
    </>
  );
}
