import { money, type Budget, sumOnAxis } from "../api/spending";
import type { Schemas } from "../api/client";
import { plural } from "../ui/format";
import type { Option } from "../ui/Picture";

type Total = Schemas["BillTotal"];

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

/** What the form begins with: what holds now, so that changing one thing leaves the rest; else a hard stop. */
export function budgetForm(now: Pick<Budget, "limit" | "period" | "hard_stop" | "warn_at">) {
  return {
    limit: now.limit === null ? "" : String(now.limit),
    period: now.period === "total" ? ("total" as const) : ("month" as const),
    stop: now.limit === null ? true : now.hard_stop,
    warnAt: now.limit === null ? [0.5, 0.8, 1] : now.warn_at,
  };
}

/** Every day of a month, or every month from the first to the last that has a bill, in order. */
export function spansOf(items: Pick<Total, "group">[], month: string): string[] {
  if (month) {
    const [year, number] = month.split("-").map(Number) as [number, number];
    const days = new Date(Date.UTC(year, number, 0)).getUTCDate();
    return Array.from({ length: days }, (_, i) => `${month}-${String(i + 1).padStart(2, "0")}`);
  }
  const known = items.map((item) => item.group).sort();
  const spans: string[] = [];
  for (let at = known[0]; at !== undefined && at <= known.at(-1)!; at = monthAfter(at)) spans.push(at);
  return spans;
}

function monthAfter(month: string): string {
  const [year, number] = month.split("-").map(Number) as [number, number];
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 7);
}

/** A limit that is farther away is told in words: in the picture it would press all else to the ground. */
const NEAR = 0.2;

/** Bars for what each day or month came to, a line for the sum so far, a dashed one for the limit where it applies. */
export function overTimeOption(items: Total[], month: string, limit: number | null, today: string): Option {
  const currency = items[0]?.currency ?? "";
  const of = new Map(
    items.filter((item) => item.currency === currency).map((item) => [item.group, item.amount]),
  );
  const spans = spansOf(items, month);
  const amounts = spans.map((span) => of.get(span) ?? 0);
  let sum = 0;
  const sums = amounts.map((amount, i) => {
    sum += amount;
    return spans[i]! > today.slice(0, spans[i]!.length) ? null : sum;
  });
  return {
    grid: { left: 72, right: 20, top: 32, bottom: 58 },
    legend: { bottom: 0 },
    tooltip: {
      trigger: "axis",
      renderMode: "richText",
      confine: true,
      valueFormatter: (value) => (typeof value === "number" ? money(value, currency) : "–"),
    },
    xAxis: {
      type: "category",
      data: spans,
      axisLabel: { hideOverlap: true, formatter: month ? dayOf : undefined },
    },
    yAxis: { type: "value", name: currency, min: 0, axisLabel: { formatter: sumOnAxis } },
    series: [
      { name: month ? "each day" : "each month", type: "bar", barMaxWidth: 48, data: amounts },
      { name: "sum so far", type: "line", showSymbol: false, data: sums },
      ...(limit === null || sum < NEAR * limit
        ? []
        : [
            {
              name: "limit",
              type: "line" as const,
              showSymbol: false,
              lineStyle: { type: "dashed" as const, width: 1.5 },
              data: spans.map(() => limit),
            },
          ]),
    ],
  };
}

function dayOf(span: string): string {
  return String(Number(span.slice(8)));
}

/** The same in a sentence. */
export function overTimeWords(all: Total[], month: string): string {
  const [first] = all;
  if (!first) return "Nothing was billed.";
  const items = all.filter((item) => item.currency === first.currency);
  const dearest = items.reduce((one, other) => (other.amount > one.amount ? other : one));
  const sum = items.reduce((total, item) => total + item.amount, 0);
  const span = month ? `on ${plural(items.length, "day")}` : `in ${plural(items.length, "month")}`;
  return `${money(sum, first.currency)} ${span}; most in ${dearest.group}: ${money(dearest.amount, dearest.currency)}.`;
}
