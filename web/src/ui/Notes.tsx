import { useState, type FormEvent } from "react";
import type { Kind } from "../api/lake";
import { useChangeNotes, useNotes } from "../api/notes";
import { useMe } from "../session";
import { Failure } from "./Failure";
import { Time } from "./Time";

/** What people wrote about a job, a model or a file, and a field for one more. */
export function Notes({ project, kind, reference }: { project: string; kind: Kind; reference: string }) {
  const notes = useNotes(project, kind, reference);
  const change = useChangeNotes(project, kind, reference);
  const me = useMe();
  const [text, setText] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    change.mutate({ text }, { onSuccess: () => setText("") });
  }
  return (
    <section className="notes" aria-label="Notes">
      <h2>Notes</h2>
      <ul className="list">
        {notes.data?.map((note) => (
          <li key={note.id}>
            <span className="quiet">
              <strong dir="auto">{note.user}</strong>, <Time at={note.written_at} />
              {note.user === me.user.name && (
                <button
                  type="button"
                  className="plain"
                  aria-label={`Remove the note of ${note.user}`}
                  onClick={() => change.mutate({ remove: note.id })}
                >
                  {" "}
                  ✕
                </button>
              )}
            </span>
            <p className="note long" dir="auto">
              {note.text}
            </p>
          </li>
        ))}
      </ul>
      <form className="row" onSubmit={submit}>
        <label className="wide">
          <span className="unseen">A note</span>
          <textarea
            required
            rows={text.includes("\n") ? 4 : 1}
            maxLength={10_000}
            placeholder="Write a note"
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
        </label>
        <button type="submit" disabled={change.isPending || text.trim() === ""}>
          Add note
        </button>
      </form>
      {(change.error ?? notes.error) && <Failure error={change.error ?? notes.error} />}
    </section>
  );
}
