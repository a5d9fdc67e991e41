import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { init, use as register, type ECharts } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import type { EChartsOption } from "echarts/types/dist/shared";
import { useEffect, useRef } from "react";
import { useDark } from "./theme";

// Lines and dots, which the overview draws too; `shapes.ts` adds the rest for the pages that need them.
register([CanvasRenderer, GridComponent, LegendComponent, LineChart, ScatterChart, TooltipComponent]);

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

type Props = {
  title: string;
  /** What it shows, for those who do not see it. */
  about: string;
  option: Option;
  /** Laid over the option without drawing it anew: what was moved or zoomed stays so. */
  over?: Option;
  height?: number;
  onPick?: (index: number) => void;
};

/** Every picture that is no plain curve. The tooltip is drawn, because the page's policy allows no inline style. */
export function Picture({ title, about, option, over, height = 300, onPick }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const dark = useDark();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const made = init(element, dark ? "dark" : undefined, { renderer: "canvas", height });
    made.on("click", (event) => pick.current?.(event.dataIndex));
    chart.current = made;
    const resize = new ResizeObserver(() => element.clientWidth !== made.getWidth() && made.resize());
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, [dark, height]);

  useEffect(() => {
    const drawn = { backgroundColor: "transparent", animation: false, color: COLOURS, ...option };
    chart.current?.setOption(drawn as Parameters<ECharts["setOption"]>[0], { notMerge: true });
  }, [option, dark, height]);

  useEffect(() => {
    if (over) chart.current?.setOption(over as Parameters<ECharts["setOption"]>[0]);
  }, [over, option, dark, height]);

  return (
    <figure className="chart">
      <figcaption dir="auto">{title}</figcaption>
      <div ref={box} role="img" aria-label={about} />
    </figure>
  );
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
