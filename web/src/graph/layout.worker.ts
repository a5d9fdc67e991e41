import { layout } from "./layout";
import type { Link } from "./visible";

self.onmessage = (event: MessageEvent<{ turn: number; ids: string[]; links: Link[] }>) => {
  const { turn, ids, links } = event.data;
  self.postMessage({ turn, places: layout(ids, links) });
};
