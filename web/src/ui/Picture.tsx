import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendScrollComponent, TooltipComponent } from "echarts/components";
import { connect, init, use as register, type ECharts } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import type { EChartsOption } from "echarts/types/dist/shared";
import { useEffect, useRef } from "react";
import { figure } from "./format";
import { csvOf, save } from "./save";
import { useDark } from "./theme";

// Lines and dots, which the overview draws too; `shapes.ts` adds the rest for the pages that need them.
register([CanvasRenderer, GridComponent, LegendScrollComponent, LineChart, ScatterChart, TooltipComponent]);

export type Option = EChartsOption;

/** Colours that stay apart for people who see few of them (Okabe and Ito), in light and dark. */
export const COLOURS = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#7a5cc0",
  "#8a6d3b",
];
export const RAMP = ["#fde725", "#5ec962", "#21918c", "#3b528b", "#440154"];

/** The ends of a scale of colours for these values; of none, any: a scale without ends cannot be drawn. */
export function coloured(values: number[]): { min: number; max: number } {
  return values.length === 0
    ? { min: 0, max: 1 }
    : { min: Math.min(...values), max: Math.max(...values) + 1e-12 };
}

type Props = {
  title: string;
  /** What it shows, for those who do not see it. */
  about: string;
  option: Option;
  /** Laid over the option without drawing it anew: what was moved or zoomed stays so. */
  over?: Option;
  height?: number;
  onPick?: (index: number, series: number) => void;
  /** Of parallel coordinates: the indices of the lines within what was dragged along axes; null without any. */
  onBrush?: (indices: number[] | null) => void;
  /** New data come while somebody looks: what they have zoomed to stays. */
  live?: boolean;
  /** Dragging zooms, a double click shows all again. */
  zoom?: boolean;
  /** Pictures of one group share their cursor and their zoom. */
  group?: string;
  /** Many axes side by side: on a narrow page the picture keeps its width and is scrolled. */
  wide?: boolean;
  /** The numbers behind the picture, to be saved as CSV. */
  table?: () => (string | number | null)[][];
};

/** Every picture that is no plain curve. The tooltip is drawn, because the page's policy allows no inline style. */
export function Picture(props: Props) {
  const {
    title,
    about,
    option,
    over,
    height = 300,
    onPick,
    onBrush,
    live = false,
    zoom = false,
    group,
    wide = false,
    table,
  } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const brush = useRef(onBrush);
  brush.current = onBrush;
  const dark = useDark();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const made = init(element, dark ? "dark" : undefined, { renderer: "canvas", height });
    made.on("click", (event) => pick.current?.(event.dataIndex, event.seriesIndex ?? 0));
    made.on("axisareaselected", () => brush.current?.(brushedIn(made)));
    if (zoom)
      made.getZr().on("dblclick", () => made.dispatchAction({ type: "dataZoom", start: 0, end: 100 }));
    if (group !== undefined) {
      made.group = group;
      connect(group);
    }
    chart.current = made;
    const resize = new ResizeObserver(() => element.clientWidth !== made.getWidth() && made.resize());
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, [dark, height, zoom, group]);

  useEffect(() => {
    const drawn = {
      backgroundColor: "transparent",
      animation: false,
      color: COLOURS,
      ...withFigures(option),
    };
    const how = live ? { replaceMerge: ["series"] } : { notMerge: true };
    chart.current?.setOption(drawn as Parameters<ECharts["setOption"]>[0], how);
    if (zoom)
      chart.current?.dispatchAction({
        type: "takeGlobalCursor",
        key: "dataZoomSelect",
        dataZoomSelectActive: true,
      });
  }, [option, dark, height, live, zoom, group]);

  useEffect(() => {
    if (over) chart.current?.setOption(over as Parameters<ECharts["setOption"]>[0]);
  }, [over, option, dark, height, zoom, group]);

  function picture() {
    const ground =
      box.current && getComputedStyle(box.current.closest(".card, .canvas, main") ?? box.current);
    const drawn = chart.current?.renderToCanvas({
      pixelRatio: 2,
      backgroundColor: ground?.backgroundColor ?? "#fff",
    });
    drawn?.toBlob((blob) => blob && save(`${fileName(title)}.png`, blob));
  }

  const drawn = <div ref={box} role="img" aria-label={about} />;
  return (
    <figure className="chart">
      <figcaption dir="auto">
        {title}
        <span className="saves">
          <button type="button" className="small" aria-label={`Save ${title} as PNG`} onClick={picture}>
            PNG
          </button>
          {table && (
            <button
              type="button"
              className="small"
              aria-label={`Save ${title} as CSV`}
              onClick={() => save(`${fileName(title)}.csv`, csvOf(table()))}
            >
              CSV
            </button>
          )}
        </span>
      </figcaption>
      {wide ? (
        <div className="wide" tabIndex={0} role="region" aria-label={`${title}, to be scrolled`}>
          {drawn}
        </div>
      ) : (
        drawn
      )}
    </figure>
  );
}

/** The lines of the first series that pass every dragged interval; null where nothing was dragged. */
function brushedIn(chart: ECharts): number[] | null {
  type Parallel = { getRawIndicesByActiveState?: (state: string) => number[] };
  const model = (chart as unknown as { getModel(): { getSeriesByIndex(i: number): Parallel } }).getModel();
  const series = model.getSeriesByIndex(0);
  const out = series.getRawIndicesByActiveState?.("inactive") ?? [];
  return out.length === 0 ? null : (series.getRawIndicesByActiveState?.("active") ?? []);
}

function fileName(title: string): string {
  return (
    title
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-|-$/g, "")
      .slice(0, 80) || "chart"
  );
}

/** Axes of numbers say four digits at most: a sum of tenths has fifteen. What an option says itself stays. */
export function withFigures(option: Option): Option {
  const axis = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(axis);
    const given = one as { type?: string; axisLabel?: object } | undefined;
    if (given?.type !== "value" && given?.type !== "log") return one;
    return { ...given, axisLabel: { formatter: figure, hideOverlap: true, ...given.axisLabel } };
  };
  const { xAxis, yAxis } = option;
  return { ...option, ...(xAxis && { xAxis: axis(xAxis) }), ...(yAxis && { yAxis: axis(yAxis) }) } as Option;
}

/** A tooltip that the canvas draws; `words` gets the data index. */
export function told(words: (index: number, series: number) => string): Option["tooltip"] {
  return {
    renderMode: "richText",
    confine: true,
    formatter: (hit) => {
      const one = Array.isArray(hit) ? hit[0] : hit;
      return one ? words(one.dataIndex, one.seriesIndex ?? 0) : "";
    },
  };
}
