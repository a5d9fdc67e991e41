import { DataZoomComponent, LegendScrollComponent, ToolboxComponent } from "echarts/components";
import { use as register } from "echarts/core";
import { useMemo, useState } from "react";
import { curveOption, PLAIN_VIEW, tableOf, type Line, type View } from "./curves";
import { Picture } from "./Picture";

register([DataZoomComponent, LegendScrollComponent, ToolboxComponent]);

export type { Line, View };

/** How all charts of a page are drawn: smoothing, the scale of values, steps or time. */
export function useView(): [View, (view: View) => void] {
  return useState<View>(PLAIN_VIEW);
}

export function ChartBar({ view, onChange }: { view: View; onChange: (view: View) => void }) {
  return (
    <div className="row chart-bar" role="group" aria-label="How the curves are drawn">
      <label>
        Smoothing {view.smooth > 0 && view.smooth.toFixed(2)}
        <input
          type="range"
          min="0"
          max="0.99"
          step="0.01"
          value={view.smooth}
          onChange={(e) => onChange({ ...view, smooth: Number(e.target.value) })}
        />
      </label>
      <label>
        Along
        <select
          value={view.along}
          onChange={(e) => onChange({ ...view, along: e.target.value as View["along"] })}
        >
          <option value="step">steps</option>
          <option value="time">time</option>
        </select>
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={view.log}
          onChange={(e) => onChange({ ...view, log: e.target.checked })}
        />{" "}
        Logarithmic
      </label>
      <span className="quiet">Drag over a chart to zoom, double-click to see all.</span>
    </div>
  );
}

type Props = {
  title: string;
  lines: Line[];
  height?: number;
  /** What the steps are. */
  over?: string;
  /** What the values are counted in. */
  unit?: string;
  view?: View;
  /** Charts of one group share their cursor and their zoom. */
  group?: string;
};

/** Curves over steps or time. Lines need not share their steps; gaps stay gaps. The table beside it says the same. */
export function Chart({
  title,
  lines,
  height = 240,
  over = "steps",
  unit = "",
  view = PLAIN_VIEW,
  group,
}: Props) {
  const option = useMemo(() => curveOption(lines, { over, unit, view }), [lines, over, unit, view]);
  return (
    <Picture
      title={title}
      about={`Curve of ${title} over ${view.along === "time" ? "time" : over}`}
      option={option}
      height={height}
      live
      zoom
      group={group}
      table={() => tableOf(lines)}
    />
  );
}
