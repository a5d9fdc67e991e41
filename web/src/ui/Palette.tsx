import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useId, useState, type KeyboardEvent } from "react";
import { useNavigate } from "react-router";
import { useApps } from "../api/apps";
import { answer, api } from "../api/client";
import { useStudies } from "../api/studies";
import { Dialog } from "./Dialog";
import { ranked, type Goal } from "./palette";
import { appPlace, jobPlace, studyPlace } from "./places";

/** Jobs are too many to hold: those whose name has what was typed are asked for. */
function useJobsNamed(project: string, asked: string) {
  const query = { limit: 8, filter: asked ? [`name:contains:${asked}`] : [] };
  return useQuery({
    queryKey: [project, "palette", asked],
    placeholderData: keepPreviousData,
    queryFn: () =>
      answer(api.GET("/api/v1/projects/{project}/jobs", { params: { path: { project }, query } })).then(
        (page) => page.items,
      ),
  });
}

function useGoals(project: string, pages: Goal[], asked: string): Goal[] {
  const apps = useApps(project).data ?? [];
  const studies = useStudies(project).data?.items ?? [];
  const jobs = useJobsNamed(project, asked.trim()).data ?? [];
  return [
    ...pages,
    ...apps.map((one) => ({ title: one.name, kind: "App", to: appPlace(project, one.name) })),
    ...studies.map((one) => ({ title: one.name, kind: "Study", to: studyPlace(project, one.name) })),
    ...jobs.map((one) => ({ title: one.name || one.id, kind: "Job", to: jobPlace(project, one.id) })),
  ];
}

/** Go anywhere by typing a part of its name: pages, apps, studies and jobs of the project. */
export default function Palette({
  project,
  pages,
  onClose,
}: {
  project: string;
  pages: Goal[];
  onClose: () => void;
}) {
  const [asked, ask] = useState("");
  const [chosen, choose] = useState(0);
  const list = useId();
  const navigate = useNavigate();
  const found = ranked(useGoals(project, pages, asked), asked);
  const at = Math.min(chosen, Math.max(0, found.length - 1));
  const go = (goal: Goal | undefined) => {
    if (!goal) return;
    onClose();
    void navigate(goal.to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && found.length > 0) {
      event.preventDefault();
      choose((at + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(found[at]);
    }
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        autoFocus
        className="palette"
        role="combobox"
        aria-label="Part of the name of a page, an app, a study or a job"
        aria-expanded={found.length > 0}
        aria-controls={list}
        aria-activedescendant={found.length > 0 ? `${list}-${at}` : undefined}
        placeholder="Page, app, study or job"
        value={asked}
        onChange={(event) => {
          ask(event.target.value);
          choose(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={list} className="goals" role="listbox" aria-label="Places">
        {found.map((goal, place) => (
          <li
            key={`${goal.kind} ${goal.to}`}
            id={`${list}-${place}`}
            role="option"
            aria-selected={place === at}
            onClick={() => go(goal)}
            onPointerMove={() => choose(place)}
          >
            <span dir="auto">{goal.title}</span> <small>{goal.kind}</small>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p role="status">Nothing here has that in its name.</p>}
    </Dialog>
  );
}
