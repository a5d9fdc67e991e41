import { useState } from "react";
import { useImportances } from "../api/studies";
import { problemFrom } from "../api/problem";

type Props = { project: string; name: string; quantities: string[]; known: number };

/** Which dimensions matter for a quantity, the largest first, as the study's models see it. */
export function Importances({ project, name, quantities, known }: Props) {
  const [quantity, setQuantity] = useState(quantities[0] ?? "");
  const found = useImportances(project, name, quantity, known);
  if (known < 3) return null;
  return (
    <section className="card" aria-labelledby="matters">
      <div className="row">
        <h2 id="matters">What matters</h2>
        <label>
          for
          <select value={quantity} onChange={(e) => setQuantity(e.target.value)}>
            {quantities.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      {found.error && !found.data && <p className="quiet">{problemFrom(found.error).message}</p>}
      <table className="bars">
        <tbody>
          {found.data?.items.map((one) => (
            <tr key={one.dimension}>
              <th scope="row" dir="auto">
                {one.dimension}
              </th>
              <td className="share">
                <meter aria-label={`Share of ${one.dimension}`} min={0} max={1} value={one.share} />
              </td>
              <td className="number">{Math.round(100 * one.share)} %</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="quiet">
        How much of the predicted variation of {quantity} stays when every other dimension is held. Dimensions
        that act together count in each.
      </p>
    </section>
  );
}
