import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { figure } from "./format";
import { useDark } from "./theme";

export type Line = { label: string; x: number[]; y: (number | null)[] };

/** Colours that stay apart for people who see few of them (Okabe and Ito), in light and dark. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5cc0", "#8a6d3b"];

type Props = { title: string; lines: Line[]; height?: number; over?: string };

/** Curves over steps. Lines need not share their steps; gaps stay gaps. The table beside it says the same in text. */
export function Chart({ title, lines, height = 220, over = "steps" }: Props) {
  const dark = useDark();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const labels = lines.map((line) => line.label).join("\n");

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const ink = getComputedStyle(element).color;
    const grid = { stroke: "rgba(128,128,128,.22)", width: 1 };
    const made = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height,
        scales: { x: { time: false } },
        axes: [
          { stroke: ink, grid, ticks: grid },
          { stroke: ink, grid, ticks: grid, size: 64, values: (_, values) => values.map((v) => figure(v)) },
        ],
        series: [
          { label: over === "steps" ? "step" : over },
          ...labels.split("\n").map((label, i) => ({
            label,
            stroke: COLOURS[i % COLOURS.length]!,
            width: 1.75,
            spanGaps: true,
            value: (_: uPlot, value: number | null) => figure(value),
          })),
        ],
        cursor: { drag: { x: true, y: false } },
      },
      [[]],
      element,
    );
    plot.current = made;
    const resize = new ResizeObserver(() =>
      made.setSize({ width: Math.max(200, element.clientWidth), height }),
    );
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [labels, height, over, dark]);

  useEffect(() => {
    if (lines.length === 0) return;
    plot.current?.setData(uPlot.join(lines.map((line) => [line.x, line.y] as uPlot.AlignedData)));
  }, [lines, labels, height, over, dark]);

  return (
    <figure className="chart">
      <figcaption dir="auto">{title}</figcaption>
      <div ref={box} role="img" aria-label={`Curve of ${title} over ${over}`} />
    </figure>
  );
}
