import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import type { components } from "../api/schema";
import { Failure } from "../ui/Failure";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

type Channel = components["schemas"]["Channel"];
type Topic = Channel["topics"][number];
type Way = Channel["way"];

const TOPICS: [Topic, string][] = [
  ["job-ended", "a job of mine ended"],
  ["job-failed", "a job of mine failed"],
  ["app-improved", "an app of mine has a better model"],
  ["app-done", "an app of mine is done"],
  ["study-finished", "a study of mine is over"],
  ["budget", "a share of a budget is spent (project admins)"],
  ["device-lost", "a device was lost (platform admins)"],
  ["backup-failed", "a backup failed (platform admins)"],
];
const WAYS: Record<Way, string> = { mail: "Mail", webhook: "Webhook", slack: "Slack", matrix: "Matrix" };
const HINTS: Record<Way, string> = {
  mail: "ana@example.org",
  webhook: "https://example.org/hook",
  slack: "https://hooks.slack.com/services/…",
  matrix: "https://SERVER/_matrix/client/v3/rooms/ROOM/send/m.room.message?access_token=TOKEN",
};
const CHANNELS = ["messages", "channels"];

/** How I am told of what happens: by which ways, about what, at which hours; and what was sent. */
export default function Messages() {
  const channels = useQuery({
    queryKey: CHANNELS,
    queryFn: () => answer(api.GET("/api/v1/messages/channels")).then((found) => found.items),
  });
  return (
    <>
      <header className="head">
        <h1>Messages</h1>
      </header>
      <p>Be told of what happens by mail, webhook, Slack or Matrix. Every mail has a link that stops them.</p>
      <NewChannel />
      <section>
        <h2>Ways to reach you</h2>
        <Loaded query={channels}>
          {(found) =>
            found.length === 0 ? (
              <p className="quiet">None yet: nothing is sent to you.</p>
            ) : (
              <div className="cards">
                {found.map((channel) => (
                  <ChannelCard key={channel.id} channel={channel} />
                ))}
              </div>
            )
          }
        </Loaded>
      </section>
      <Sent />
    </>
  );
}

type Times = { zone: string; quiet_from: string; quiet_until: string; digest_at: string };

/** What is asked of a channel, as the API wants it: empty fields are none. */
export function timesOf(times: Times) {
  return {
    zone: times.zone || "UTC",
    quiet_from: times.quiet_from && times.quiet_until ? times.quiet_from : null,
    quiet_until: times.quiet_from && times.quiet_until ? times.quiet_until : null,
    digest_at: times.digest_at || null,
  };
}

function hereZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

function NewChannel() {
  const queries = useQueryClient();
  const [way, setWay] = useState<Way>("mail");
  const [address, setAddress] = useState("");
  const [topics, setTopics] = useState<Topic[]>(["job-failed", "study-finished", "budget"]);
  const [times, setTimes] = useState<Times>({
    zone: hereZone(),
    quiet_from: "",
    quiet_until: "",
    digest_at: "",
  });
  const add = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/v1/messages/channels", { body: { way, address, topics, ...timesOf(times) } })),
    onSuccess: () => {
      setAddress("");
      return queries.invalidateQueries({ queryKey: CHANNELS });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }
  return (
    <section>
      <h2>Add a way</h2>
      <form className="stack" onSubmit={submit}>
        <div className="row">
          <label>
            Way
            <select value={way} onChange={(e) => setWay(e.target.value as Way)}>
              {Object.entries(WAYS).map(([key, title]) => (
                <option key={key} value={key}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          <label className="wide">
            Address
            <input
              required
              maxLength={1000}
              type={way === "mail" ? "email" : "url"}
              value={address}
              placeholder={HINTS[way]}
              onChange={(e) => setAddress(e.target.value)}
            />
          </label>
        </div>
        <Topics topics={topics} onChange={setTopics} />
        <TimeFields times={times} onChange={setTimes} />
        <p>
          <button type="submit" className="primary" disabled={add.isPending || topics.length === 0}>
            Add this way
          </button>
        </p>
      </form>
      {add.error && <Failure error={add.error} />}
    </section>
  );
}

function Topics({ topics, onChange }: { topics: Topic[]; onChange: (topics: Topic[]) => void }) {
  return (
    <fieldset className="choices">
      <legend>Tell me when</legend>
      {TOPICS.map(([topic, words]) => (
        <label key={topic}>
          <input
            type="checkbox"
            checked={topics.includes(topic)}
            onChange={(e) =>
              onChange(e.target.checked ? [...topics, topic] : topics.filter((each) => each !== topic))
            }
          />{" "}
          {words}
        </label>
      ))}
    </fieldset>
  );
}

function TimeFields({ times, onChange }: { times: Times; onChange: (times: Times) => void }) {
  const field = (name: keyof Times, title: string, type: string) => (
    <label>
      {title}
      <input
        type={type}
        maxLength={64}
        value={times[name]}
        onChange={(e) => onChange({ ...times, [name]: e.target.value })}
      />
    </label>
  );
  return (
    <div className="row">
      {field("quiet_from", "Quiet from", "time")}
      {field("quiet_until", "Quiet until", "time")}
      {field("digest_at", "One digest a day, at", "time")}
      {field("zone", "Time zone", "text")}
    </div>
  );
}

function ChannelCard({ channel }: { channel: Channel }) {
  const queries = useQueryClient();
  const [editing, setEditing] = useState(false);
  const [topics, setTopics] = useState(channel.topics);
  const [times, setTimes] = useState<Times>({
    zone: channel.zone,
    quiet_from: channel.quiet_from ?? "",
    quiet_until: channel.quiet_until ?? "",
    digest_at: channel.digest_at ?? "",
  });
  const again = () => queries.invalidateQueries({ queryKey: ["messages"] });
  const params = { path: { channel: channel.id } };
  const change = useMutation({
    mutationFn: (body: components["schemas"]["ChangeChannel"]) =>
      answer(api.PATCH("/api/v1/messages/channels/{channel}", { params, body })),
    onSuccess: () => {
      setEditing(false);
      return again();
    },
  });
  const test = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/messages/channels/{channel}/test", { params })),
    onSuccess: again,
  });
  const remove = useMutation({
    mutationFn: () => answer(api.DELETE("/api/v1/messages/channels/{channel}", { params })),
    onSuccess: again,
  });
  const error = change.error ?? test.error ?? remove.error;
  const name = `${WAYS[channel.way]} to ${channel.address}`;
  return (
    <article className="card" aria-label={name}>
      <h3 className="long">
        {name} {channel.stopped && <span className="tag">stopped</span>}
      </h3>
      {editing ? (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            change.mutate({ topics, ...timesOf(times) });
          }}
        >
          <Topics topics={topics} onChange={setTopics} />
          <TimeFields times={times} onChange={setTimes} />
          <p className="row">
            <button type="submit" className="primary" disabled={change.isPending || topics.length === 0}>
              Save
            </button>
            <button type="button" onClick={() => setEditing(false)}>
              Cancel
            </button>
          </p>
        </form>
      ) : (
        <>
          <ul className="names">
            {TOPICS.filter(([topic]) => channel.topics.includes(topic)).map(([topic, words]) => (
              <li key={topic}>{words}</li>
            ))}
          </ul>
          <p className="quiet">{whenSent(channel)}</p>
          {channel.secret && (
            <details>
              <summary>Secret for its signature</summary>
              <code className="long">{channel.secret}</code>
            </details>
          )}
          <p className="row">
            <button type="button" className="small" onClick={() => setEditing(true)}>
              Change
            </button>
            <button type="button" className="small" disabled={test.isPending} onClick={() => test.mutate()}>
              Send a test
            </button>
            <button
              type="button"
              className="small"
              disabled={change.isPending}
              onClick={() => change.mutate({ stopped: !channel.stopped })}
            >
              {channel.stopped ? "Send again" : "Unsubscribe"}
            </button>
            <button
              type="button"
              className="small"
              onClick={() => confirm(`Remove ${name}? What waits is not sent.`) && remove.mutate()}
            >
              Remove
            </button>
          </p>
        </>
      )}
      {test.isSuccess && !editing && <p role="status">A message is on its way.</p>}
      {error && <Failure error={error} />}
    </article>
  );
}

/** When messages go by a channel, in words. */
export function whenSent(
  channel: Pick<Channel, "quiet_from" | "quiet_until" | "digest_at" | "zone">,
): string {
  if (channel.digest_at) return `All of a day as one message at ${channel.digest_at} (${channel.zone})`;
  if (channel.quiet_from)
    return `At once, but not from ${channel.quiet_from} to ${channel.quiet_until} (${channel.zone})`;
  return "At once, at any hour";
}

function Sent() {
  const sent = useQuery({
    queryKey: ["messages", "sent"],
    queryFn: () => answer(api.GET("/api/v1/messages")).then((found) => found.items),
    refetchInterval: 10_000,
  });
  return (
    <section>
      <h2>What was sent</h2>
      <Loaded query={sent}>
        {(found) =>
          found.length === 0 ? (
            <p className="quiet">Nothing yet.</p>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Message</th>
                    <th scope="col">Written</th>
                    <th scope="col">State</th>
                    <th scope="col">Trouble</th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((message) => (
                    <tr key={message.id}>
                      <td className="long" dir="auto">
                        {message.title}
                      </td>
                      <td>
                        <Time at={message.at} />
                      </td>
                      <td>
                        {message.state}
                        {message.state === "waiting" && (
                          <>
                            , due <Time at={message.due_at} />
                          </>
                        )}
                      </td>
                      <td className="long">{message.error ?? "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}
