import { useState } from "react";
import { Dialog } from "../ui/Dialog";
import { titleOfColumn } from "./columns";

/** Which columns are shown, in which order: those that are ticked come first, as they were ticked. */
export function ChooseColumns({
  shown,
  all,
  onChange,
  onClose,
}: {
  shown: string[];
  all: string[];
  onChange: (columns: string[]) => void;
  onClose: () => void;
}) {
  const [text, setText] = useState("");
  const offered = [...shown, ...all.filter((one) => !shown.includes(one))].filter((one) =>
    titleOfColumn(one).toLowerCase().includes(text.toLowerCase()),
  );
  const move = (column: string) => {
    const i = shown.indexOf(column);
    onChange([...shown.slice(0, i - 1), column, shown[i - 1]!, ...shown.slice(i + 1)]);
  };
  return (
    <Dialog title="Columns" onClose={onClose}>
      <p className="quiet">
        Of the job, of its tags and metrics (also _min and _max), and of what it was given. The address keeps
        the choice: send or bookmark it.
      </p>
      <label>
        Find a column
        <input type="search" value={text} onChange={(e) => setText(e.target.value)} />
      </label>
      <ul className="choices">
        {offered.map((column) => {
          const on = shown.includes(column);
          return (
            <li key={column}>
              <label className="check" dir="auto">
                <input
                  type="checkbox"
                  checked={on}
                  onChange={() => onChange(on ? shown.filter((one) => one !== column) : [...shown, column])}
                />{" "}
                {titleOfColumn(column)}
              </label>
              {on && shown.indexOf(column) > 0 && (
                <button
                  type="button"
                  className="small"
                  aria-label={`${titleOfColumn(column)} further left`}
                  onClick={() => move(column)}
                >
                  ←
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </Dialog>
  );
}
