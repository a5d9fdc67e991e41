import { money, promised, running, standing, type Budget } from "../api/spending";

const WORDS = {
  none: "No budget is set.",
  well: "Within the budget.",
  warned: "Close to the budget.",
  over: "The budget is used up.",
};

export function BudgetCard({ budget }: { budget: Budget }) {
  const state = standing(budget);
  const sum = (amount: number) => money(amount, budget.currency);
  return (
    <div className="card budget">
      {budget.spent_since != null ? (
        <>
          <strong>{sum(budget.spent_since)}</strong> spent today, {sum(budget.spent)}
        </>
      ) : (
        <>
          <strong>{sum(budget.spent)}</strong> spent
        </>
      )}
      {budget.limit === null
        ? budget.spent_since != null && " this month"
        : ` of ${sum(budget.limit)} ${budget.period === "month" ? "a month" : "in all"}`}
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
        {`${sum(budget.billed ?? budget.spent)} billed`}
        {running(budget) > 0 && `, ${sum(running(budget))} by jobs that still run`}
        {promised(budget) > 0 && `, ${sum(promised(budget))} promised to running jobs`}
        {". "}
        {WORDS[state]}
        {budget.hard_stop && " Jobs stop at the limit."}
      </p>
    </div>
  );
}
