import { CPUS, excluded, MEMORIES, type Limits, type Offer } from "../api/profiles";
import { money, sumOnAxis } from "../api/spending";
import { duration, memory } from "../ui/format";
import { RAMP, told, type Option } from "../ui/Picture";
import "../ui/shapes";

const OUT = "#c8402f";

function words(offer: Offer, limits: Limits, currency: string): string {
  const why = excluded(offer, limits);
  const lines = [
    `${offer.vcpu} vCPU, ${memory(offer.memory_mb)}${offer.terms ? `, ${offer.terms}` : ""}`,
    `${duration(offer.seconds)} (${duration(offer.low_seconds)} to ${duration(offer.high_seconds)})`,
    money(offer.cost, currency),
  ];
  if (why) lines.push(`excluded: ${why}`);
  return lines.join("\n");
}

/** The predicted runtime over vCPU and memory; what breaks a limit is red. */
export function gridOption(offers: Offer[], limits: Limits, chosen: Offer | null, currency: string): Option {
  const inside = offers.filter((offer) => excluded(offer, limits) === null);
  const outside = offers.filter((offer) => excluded(offer, limits) !== null);
  const at = (offer: Offer) => [CPUS.indexOf(offer.vcpu), MEMORIES.indexOf(offer.memory_mb)];
  const seconds = inside.map((offer) => Math.log10(offer.seconds));
  const series: Option["series"] = [
    {
      name: "within the limits",
      type: "heatmap",
      data: inside.map((offer) => [...at(offer), Math.log10(offer.seconds)]),
    },
    {
      name: "excluded",
      type: "heatmap",
      itemStyle: { color: OUT, opacity: 0.75 },
      data: outside.map((offer) => [...at(offer), 0]),
    },
  ];
  if (chosen && CPUS.includes(chosen.vcpu) && MEMORIES.includes(chosen.memory_mb))
    series.push({
      name: "chosen",
      type: "scatter",
      symbol: "circle",
      symbolSize: 16,
      itemStyle: { color: "#fff", borderColor: "#111", borderWidth: 3 },
      data: [at(chosen)],
    });
  return {
    grid: { left: 76, right: 88, top: 36, bottom: 48 },
    tooltip: told((i, which) => {
      const offer = which === 0 ? inside[i] : which === 1 ? outside[i] : chosen;
      return offer ? words(offer, limits, currency) : "";
    }),
    xAxis: { type: "category", name: "vCPU", nameLocation: "middle", nameGap: 28, data: CPUS.map(String) },
    yAxis: { type: "category", name: "memory", data: MEMORIES.map((mb) => memory(mb)) },
    visualMap: [
      {
        seriesIndex: 0,
        min: Math.min(...seconds, 9),
        max: Math.max(...seconds, -9),
        right: 0,
        top: "middle",
        text: ["slow", "fast"],
        formatter: (value) => duration(10 ** Number(value)),
        inRange: { color: RAMP },
      },
      { seriesIndex: 1, show: false, min: 0, max: 0, inRange: { color: [OUT] } },
    ],
    series,
  };
}

/** Price over runtime, with those that no other size beats in both. */
export function frontOption(offers: Offer[], front: Offer[], limits: Limits, currency: string): Option {
  const inside = offers.filter((offer) => excluded(offer, limits) === null);
  const outside = offers.filter((offer) => excluded(offer, limits) !== null);
  const dot = (offer: Offer) => [offer.seconds, offer.cost];
  const best = [...front].sort((a, b) => a.seconds - b.seconds);
  return {
    grid: { left: 76, right: 24, top: 24, bottom: 84 },
    legend: { type: "scroll", bottom: 0 },
    tooltip: told((i, which) => {
      const offer = [best, inside, outside][which]?.[i];
      return offer ? words(offer, limits, currency) : "";
    }),
    xAxis: { type: "log", name: "runtime, seconds", nameLocation: "middle", nameGap: 26 },
    yAxis: {
      type: "value",
      name: `cost, ${currency}`,
      scale: true,
      axisLabel: { formatter: sumOnAxis },
    },
    series: [
      { name: "Pareto front", type: "line", symbolSize: 8, z: 3, data: best.map(dot) },
      { name: "within the limits", type: "scatter", symbolSize: 5, data: inside.map(dot) },
      {
        name: "excluded",
        type: "scatter",
        symbol: "diamond",
        symbolSize: 6,
        itemStyle: { color: OUT },
        data: outside.map(dot),
      },
    ],
  };
}
