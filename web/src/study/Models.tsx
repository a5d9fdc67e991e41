import { useState } from "react";
import { aimOf, dimensionsOf, useRegion, useSlice, type Study, type StudyPoint } from "../api/studies";
import { problemFrom } from "../api/problem";
import { Picture } from "../ui/Picture";
import { measured, regionOption, sliceOption } from "./pictures";

/** What the study's models believe: along one dimension, and over two. */
export function Models({ project, study, points }: { project: string; study: Study; points: StudyPoint[] }) {
  const dimensions = dimensionsOf(study);
  const aim = aimOf(study);
  const known = measured(points).length;
  const [along, setAlong] = useState(dimensions[0]?.name ?? "");
  const [quantity, setQuantity] = useState(aim.quantity);
  const [x, setX] = useState(dimensions[0]?.name ?? "");
  const [y, setY] = useState(dimensions[1]?.name ?? "");
  const slice = useSlice(project, study.name, along, known);
  const region = useRegion(project, study.name, x, y, known);
  const names = dimensions.map((dimension) => dimension.name);
  if (known < 2) return null;
  const failed = slice.error ?? region.error;
  return (
    <section>
      <h2>What the models believe</h2>
      {failed && !slice.data && <p className="quiet">{problemFrom(failed).message}</p>}
      <div className="charts">
        {slice.data && (
          <div className="card">
            <div className="row">
              <Choice label="Along" value={along} of={names} onChange={setAlong} />
              <Choice
                label="Quantity"
                value={quantity}
                of={Object.keys(slice.data.of)}
                onChange={setQuantity}
              />
            </div>
            <Picture
              title={`${quantity} along ${slice.data.dimension}`}
              about={`Predicted ${quantity} along ${slice.data.dimension} with the band that holds nine tenths, the other dimensions as recommended`}
              option={sliceOption(
                slice.data,
                quantity,
                dimensions.find((one) => one.name === slice.data.dimension)?.log ?? false,
              )}
            />
          </div>
        )}
        {dimensions.length > 1 && region.data && (
          <div className="card">
            <div className="row">
              <Choice label="Across" value={x} of={names.filter((name) => name !== y)} onChange={setX} />
              <Choice label="Up" value={y} of={names.filter((name) => name !== x)} onChange={setY} />
            </div>
            <Picture
              title="Where the constraints hold"
              about={`How likely all constraints hold over ${region.data.x} and ${region.data.y}; measured points are marked`}
              option={regionOption(region.data, points)}
            />
          </div>
        )}
      </div>
    </section>
  );
}

function Choice(props: { label: string; value: string; of: string[]; onChange: (value: string) => void }) {
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.target.value)}>
        {props.of.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
