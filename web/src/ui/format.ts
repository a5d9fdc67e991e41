/** Numbers and times as people read them. Times are in the viewer's own zone. */

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [3600, "minute"],
  [86400, "hour"],
  [86400 * 30, "day"],
  [86400 * 365, "month"],
  [Infinity, "year"],
];
const LENGTHS: Record<string, number> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86400,
  month: 86400 * 30,
  year: 86400 * 365,
};

export function moment(iso: string): string {
  return full.format(new Date(iso));
}

export function ago(iso: string, now: number): string {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  const [, unit] = STEPS.find(([limit]) => Math.abs(seconds) < limit) ?? STEPS[STEPS.length - 1]!;
  return relative.format(Math.round(seconds / LENGTHS[unit]!), unit);
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ["kB", "MB", "GB", "TB", "PB"];
  let value = size;
  let unit = -1;
  do {
    value /= 1000;
    unit += 1;
  } while (value >= 999.5 && unit < units.length - 1);
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** As the command line and the server write it: MB and GB of memory are powers of 1024, as `memory_mb` counts. */
export function memory(mb: number): string {
  return mb >= 1024 ? `${(mb / 1024).toFixed(mb % 1024 === 0 ? 0 : 1)} GB` : `${Math.round(mb)} MB`;
}

export function count(number: number): string {
  return number.toLocaleString("en");
}

/** Four significant digits: enough to compare, short enough to read. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3
    ? Number(value.toPrecision(3)).toExponential()
    : String(Number(value.toPrecision(4)));
}

/** A share in per cent, with as many digits as tell it from none and from all. */
export function percent(share: number): string {
  if (share > 0 && share < 1e-4) return "under 0.01 %";
  if (share < 1 && share > 0.9999) return "over 99.99 %";
  return `${Number((100 * share).toFixed(share > 0.99 || share < 0.01 ? 2 : 1))} %`;
}

/** "1 line", "2,000 lines". */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** The time of day to the second, in the viewer's zone. */
export function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString("en-GB");
}
