import { Link, useParams } from "react-router";
import type { Event } from "../api/client";
import { Time } from "./Time";

/** The history, newest first. */
export function EventList({ events }: { events: Event[] }) {
  const project = useParams().project ?? "";
  if (events.length === 0) return <p className="quiet">Nothing yet.</p>;
  return (
    <ol className="events">
      {events.map((event) => (
        <li key={event.seq}>
          <span className={`kind ${event.kind.split(".")[1] ?? ""}`}>{event.kind.replace(/[._]/g, " ")}</span>
          <span className="clip" dir="auto">
            {project && event.kind.startsWith("job.") ? (
              <Link to={`/p/${encodeURIComponent(project)}/jobs/${event.subject}`}>
                {event.subject_name ?? event.subject}
              </Link>
            ) : (
              wording(event)
            )}
          </span>
          <span className="quiet">
            {event.actor_name && <>{event.actor_name} · </>}
            <Time at={event.at} />
          </span>
        </li>
      ))}
    </ol>
  );
}

function wording(event: Event): string {
  const name = event.body.name;
  return event.subject_name ?? (typeof name === "string" ? name : event.subject);
}
