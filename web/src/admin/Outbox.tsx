import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { answer, api } from "../api/client";
import { count } from "../ui/format";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** How far messages to everybody have come, and by which ways they may leave; never what they say. */
export function Outbox() {
  const outbox = useQuery({
    queryKey: ["outbox"],
    queryFn: () => answer(api.GET("/api/v1/messages/outbox")),
    refetchInterval: 15_000,
  });
  return (
    <section>
      <h2>Messages</h2>
      <Loaded query={outbox}>
        {(found) => (
          <>
            <dl className="facts">
              <div>
                <dt>Waiting</dt>
                <dd>
                  {count(found.waiting)}
                  {found.oldest_waiting && (
                    <>
                      , the oldest since <Time at={found.oldest_waiting} />
                    </>
                  )}
                </dd>
              </div>
              <div>
                <dt>Given up</dt>
                <dd>{count(found.failed)}</dd>
              </div>
              <div>
                <dt>Ways of all people</dt>
                <dd>{count(found.channels)}</dd>
              </div>
              <div>
                <dt>Mail server</dt>
                <dd>{found.mail ? "set" : "none: EASEL_SMTP_HOST and EASEL_MAIL_FROM"}</dd>
              </div>
              <div>
                <dt>Private networks that webhooks may reach</dt>
                <dd>{found.networks.join(", ") || "none"}</dd>
              </div>
            </dl>
            {found.failures.length > 0 && (
              <>
                <h3>Why the newest failed</h3>
                <ul>
                  {found.failures.map((why) => (
                    <li key={why} className="long">
                      {why}
                    </li>
                  ))}
                </ul>
              </>
            )}
            <p>
              <Link to="/messages">Your own messages</Link>
            </p>
          </>
        )}
      </Loaded>
    </section>
  );
}
