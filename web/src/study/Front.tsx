import { useMemo, useState } from "react";
import { useCurrency } from "../session";
import { plural } from "../ui/format";
import { aimOf, useFront, type Study, type StudyPoint } from "../api/studies";
import { Picture } from "../ui/Picture";
import { frontOption, measured, paretoOf, risesIn } from "./pictures";

type Props = { project: string; study: Study; points: StudyPoint[] };

/** The objective against another quantity, with the points that no other beats in both joined. */
export function Front({ project, study, points }: Props) {
  const { quantity, upwards } = aimOf(study);
  const done = measured(points);
  const whole = useFront(project, study.name, done.length);
  const others = [...new Set(done.flatMap((point) => Object.keys(point.values)))].filter(
    (name) => name !== quantity,
  );
  const [chosen, setChosen] = useState("");
  const other = others.includes(chosen) ? chosen : (others.find((name) => name === "cost") ?? others[0]);
  const currency = useCurrency();
  const more = other !== undefined && risesIn(study.goal, other);
  const option = useMemo(
    () =>
      other === undefined
        ? null
        : frontOption(
            points,
            paretoOf(points, [quantity, upwards], [other, more]),
            quantity,
            other,
            currency,
          ),
    [points, quantity, upwards, other, more, currency],
  );
  if (option === null || other === undefined || done.length < 2) return null;
  const kept = paretoOf(points, [quantity, upwards], [other, more]).length;
  return (
    <div className="card">
      <div className="row">
        <label>
          {quantity} against
          <select value={other} onChange={(e) => setChosen(e.target.value)}>
            {others.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <Picture
        title="Pareto front"
        about={`${quantity} against ${other} of ${plural(done.length, "point")}; ${kept} are beaten by no other in both`}
        option={option}
      />
      <p className="quiet">
        More {upwards ? "" : "or less "}
        {quantity} is never had for {more ? "more" : "less"} {other} than on the line.
        {whole.data &&
          whole.data.length > 1 &&
          ` Over all that the goal names: ${plural(whole.data.length, "point")}.`}
      </p>
    </div>
  );
}
