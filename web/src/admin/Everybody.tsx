import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "react-router";
import { answer, api } from "../api/client";
import type { components } from "../api/schema";
import { useMe } from "../session";
import { Failure } from "../ui/Failure";
import { plural } from "../ui/format";
import { Time } from "../ui/Time";

type Person = components["schemas"]["Person"];

/** Everybody on this installation: people with their groups, and programs; disable one, let one in again. */
export function Everybody() {
  const queries = useQueryClient();
  const me = useMe();
  const people = useInfiniteQuery({
    queryKey: ["everybody"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answer(api.GET("/api/v1/users", { params: { query: { limit: 100, cursor: pageParam } } })),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const again = () => queries.invalidateQueries({ queryKey: ["everybody"] });
  const disable = useMutation({
    mutationFn: (user: string) =>
      answer(
        api.POST("/api/v1/users/{user}/disable", {
          params: { path: { user } },
          body: { kill_running: false },
        }),
      ),
    onSuccess: again,
  });
  const enable = useMutation({
    mutationFn: (user: string) =>
      answer(api.POST("/api/v1/users/{user}/enable", { params: { path: { user } } })),
    onSuccess: again,
  });
  const found = people.data?.pages.flatMap((page) => page.items) ?? [];
  const error = people.error ?? disable.error ?? enable.error;
  const gone = disable.data;
  return (
    <section>
      <h2>People and programs</h2>
      <p className="quiet">
        Members are admitted, invited and given roles on the People page of each project; what groups of a
        provider mean stands in the settings of the server (sign_on).
      </p>
      {error && <Failure error={error} />}
      {gone && (
        <p role="status">
          {gone.user.name} is disabled: {plural(gone.tokens, "token")} stopped working,{" "}
          {plural(gone.jobs, "waiting job")} ended.
        </p>
      )}
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Projects</th>
              <th scope="col">Signs on with</th>
              <th scope="col">Groups</th>
              <th scope="col">Since</th>
              <th scope="col">
                <span className="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map((person) => (
              <Row
                key={person.id}
                person={person}
                self={person.id === me.user.id}
                onChange={() =>
                  person.disabled_at
                    ? enable.mutate(person.id)
                    : confirm(
                        `Disable ${person.name}? Sessions, tokens and waiting jobs end at once; their work stays.`,
                      ) && disable.mutate(person.id)
                }
              />
            ))}
          </tbody>
        </table>
      </div>
      {people.hasNextPage && (
        <button type="button" disabled={people.isFetching} onClick={() => void people.fetchNextPage()}>
          More
        </button>
      )}
    </section>
  );
}

function Row({ person, self, onChange }: { person: Person; self: boolean; onChange: () => void }) {
  return (
    <tr>
      <td className="long" dir="auto">
        {person.name} {person.platform_admin && <span className="tag">platform admin</span>}
        {person.service && <span className="tag">program</span>}
        {person.disabled_at && <span className="tag">disabled</span>}
      </td>
      <td className="long">
        {person.projects.length === 0
          ? "–"
          : person.projects.map((project, at) => (
              <span key={project}>
                {at > 0 && ", "}
                <Link to={`/p/${encodeURIComponent(project)}/people`}>{project}</Link>
              </span>
            ))}
      </td>
      <td>
        {person.provider ? (
          <>
            {person.provider}, <Time at={person.signed_on_at} />
          </>
        ) : (
          "tokens"
        )}
      </td>
      <td className="long" dir="auto">
        {person.groups?.join(", ") || "–"}
      </td>
      <td>
        <Time at={person.created_at} />
      </td>
      <td>
        {!self && (
          <button
            type="button"
            className="small"
            aria-label={`${person.disabled_at ? "Let in" : "Disable"} ${person.name}`}
            onClick={onChange}
          >
            {person.disabled_at ? "Let in again" : "Disable"}
          </button>
        )}
      </td>
    </tr>
  );
}
