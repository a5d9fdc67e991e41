import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { answer, api } from "../api/client";
import { Failure } from "./Failure";
import { Picture } from "./Picture";
import { poolHistoryOption, poolHistoryWords } from "./poolHistory";

const SPANS: [number, string][] = [
  [1, "the last hour"],
  [24, "the last day"],
  [24 * 7, "the last week"],
  [24 * 30, "the last 30 days"],
];

/** The pool's use over time: of one project beside all others, or (for platform admins) of each. */
export default function PoolHistory({ project }: { project?: string }) {
  const [hours, setHours] = useState(1);
  const [quantity, setQuantity] = useState<"vcpu" | "gpus">("vcpu");
  const found = useQuery({
    queryKey: [project ?? "", "job", "pool-history", hours],
    refetchInterval: 30_000,
    placeholderData: (old) => old,
    queryFn: () =>
      project === undefined
        ? answer(api.GET("/api/v1/pool/history", { params: { query: { hours } } }))
        : answer(
            api.GET("/api/v1/projects/{project}/pool/history", {
              params: { path: { project }, query: { hours } },
            }),
          ),
  });
  const option = useMemo(
    () => (found.data ? poolHistoryOption(found.data, quantity) : null),
    [found.data, quantity],
  );
  if (found.error && !found.data) return <Failure error={found.error} />;
  if (!found.data || option === null) return null;
  const words = poolHistoryWords(found.data, quantity);
  return (
    <div className="card">
      <div className="row">
        <label>
          Use in
          <select value={hours} onChange={(e) => setHours(Number(e.target.value))}>
            {SPANS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {found.data.gpus > 0 && (
          <label>
            of
            <select value={quantity} onChange={(e) => setQuantity(e.target.value as "vcpu" | "gpus")}>
              <option value="vcpu">vCPU</option>
              <option value="gpus">GPUs</option>
            </select>
          </label>
        )}
      </div>
      <Picture title="Use of the pool over time" about={words} option={option} height={240} />
      <p className="quiet">{words}</p>
    </div>
  );
}
