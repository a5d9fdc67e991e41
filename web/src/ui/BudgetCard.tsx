import { money, promised, running, standing, type Budget } from "../api/spending";

const WORDS = {
  none: "No budget is set.",
  well: "Within the budget.",
  warned: "Close to the budget.",
  over: "The budget is used up.",
};

export function BudgetCard({ budget }: { budget: Budget }) {
  const state = standing(budget);
  return (
    <div className="card budget">
      {budget.spent_since != null ? (
        <>
          <strong>{money(budget.spent_since)}</strong> spent today, {money(budget.spent)}
        </>
      ) : (
        <>
          <strong>{money(budget.spent)}</strong> spent
        </>
      )}
      {budget.limit === null
        ? budget.spent_since != null && " this month"
        : ` of ${money(budget.limit)} ${budget.period === "month" ? "a month" : "in all"}`}
      {` (${money(budget.billed ?? budget.spent)} billed${running(budget) > 0 ? `, ${money(running(budget))} by jobs that still run` : ""})`}
      {promised(budget) > 0 && `, ${money(promised(budget))} promised to running jobs`}
      {budget.limit !== null && (
        <meter
          aria-label="Spent of the budget"
          min={0}
          max={budget.limit}
          high={budget.limit * 0.8}
          value={budget.spent + promised(budget)}
        />
      )}
      <p className="quiet">
        {WORDS[state]}
        {budget.hard_stop && " Jobs stop at the limit."}
      </p>
    </div>
  );
}
