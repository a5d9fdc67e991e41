import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { App } from "../api/apps";
import { answer, api } from "../api/client";
import { Loaded } from "../ui/Loaded";

/** Programs that feed, refine and infer, made for this app. */
export function Code({ project, app }: { project: string; app: App }) {
  const sources = useQuery({
    queryKey: [project, "apps", app.name, "client"],
    queryFn: () =>
      answer(
        api.GET("/api/v1/projects/{project}/apps/{name}/client", {
          params: { path: { project, name: app.name } },
        }),
      ).then((found) => found.files),
  });
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Loaded query={sources}>
      {(files) => {
        const shown = chosen ?? Object.keys(files)[0] ?? "";
        return (
          <>
            <div className="row" role="group" aria-label="Files">
              {Object.keys(files).map((name) => (
                <button
                  type="button"
                  key={name}
                  aria-pressed={name === shown}
                  onClick={() => setChosen(name)}
                >
                  {name}
                </button>
              ))}
              <span className="spring" />
              <button type="button" onClick={() => save(shown, files[shown] ?? "")}>
                Download {shown}
              </button>
            </div>
            <pre tabIndex={0} aria-label={shown}>
              {files[shown]}
            </pre>
          </>
        );
      }}
    </Loaded>
  );
}

function save(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
