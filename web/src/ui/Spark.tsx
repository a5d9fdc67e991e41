import { figure, plural } from "./format";

export type SparkLine = { name: string; values: (number | null)[] };

const WIDTH = 240;
const HEIGHT = 48;
const ROOM = 2;

/** A series as a small curve: what it looks like, not what it says to the last digit. */
export function Spark({ lines, steps, large }: { lines: SparkLine[]; steps: number; large?: boolean }) {
  const known = lines.flatMap((line) => line.values.filter((value) => value !== null));
  const low = Math.min(...known);
  const high = Math.max(...known);
  const span = known.length > 0 ? ` from ${figure(low)} to ${figure(high)}` : "";
  const names = lines.map((line) => line.name).filter(Boolean);
  const of = names.length > 0 ? `${names.join(", ")}: ` : "";
  return (
    <figure className={large ? "spark large" : "spark"}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Curve of ${of}${plural(steps, "step")}${span}`}
      >
        {lines.map((line, i) => (
          <path key={line.name} className={`line-${i % 6}`} d={pathOf(line.values, low, high)} />
        ))}
      </svg>
      <figcaption>
        {of}
        {plural(steps, "step")}
        {span}
      </figcaption>
    </figure>
  );
}

/** The path of a line from left to right; where values are missing it is broken, and a lone value is a dash. */
export function pathOf(values: (number | null)[], low: number, high: number): string {
  const across = (WIDTH - 2 * ROOM) / Math.max(1, values.length - 1);
  const up = (HEIGHT - 2 * ROOM) / (high - low || 1);
  let drawn = "";
  values.forEach((value, i) => {
    if (value === null) return;
    const y = high === low ? HEIGHT / 2 : HEIGHT - ROOM - (value - low) * up;
    const begins = (values[i - 1] ?? null) === null;
    drawn += `${begins ? "M" : "L"}${round(ROOM + i * across)} ${round(y)}`;
    if (begins && (values[i + 1] ?? null) === null) drawn += "h1";
  });
  return drawn;
}

function round(place: number): number {
  return Math.round(place * 10) / 10;
}
