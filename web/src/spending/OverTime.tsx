import { useQuery } from "@tanstack/react-query";
import { BarChart } from "echarts/charts";
import { use as register } from "echarts/core";
import { useMemo } from "react";
import { answer, api } from "../api/client";
import type { Budget } from "../api/spending";
import { Picture } from "../ui/Picture";
import { overTimeOption, overTimeWords, thisMonth } from "./figures";

register([BarChart]);

/** What each day of a month came to, or each month, and how near that is to the budget. */
export default function OverTime({
  project,
  month,
  budget,
}: {
  project: string;
  month: string;
  budget: Budget;
}) {
  const by = month ? "day" : "month";
  const found = useQuery({
    queryKey: [project, "job", "bills", by, month],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/bills", {
          params: { path: { project }, query: { by, month: month || undefined } },
        }),
      ),
  });
  const now = new Date();
  const applies = budget.period === "total" ? month === "" : month === thisMonth(now);
  const limit = applies ? budget.limit : null;
  const today = now.toISOString().slice(0, 10);
  const items = found.data?.items;
  const option = useMemo(
    () => (items ? overTimeOption(items, month, limit, today) : null),
    [items, month, limit, today],
  );
  if (!items || items.length === 0 || option === null) return null;
  const words = overTimeWords(items, month);
  return (
    <div className="card">
      <Picture
        title={month ? `Billed on each day of ${month} (UTC)` : "Billed in each month (UTC)"}
        about={words}
        option={option}
        height={260}
        table={() => [
          [by, "jobs", "hours", "amount", "currency"],
          ...items.map((one) => [one.group, one.jobs, one.hours, one.amount, one.currency]),
        ]}
      />
      <p className="quiet">{words}</p>
    </div>
  );
}
