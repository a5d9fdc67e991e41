/** Maps of cells, parallel coordinates and whiskers: imported by what draws them. */
import { CustomChart, HeatmapChart, ParallelChart } from "echarts/charts";
import { ParallelComponent, VisualMapComponent } from "echarts/components";
import { use as register } from "echarts/core";

register([CustomChart, HeatmapChart, ParallelChart, ParallelComponent, VisualMapComponent]);
