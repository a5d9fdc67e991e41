import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { answer, api } from "../api/client";
import { useDevices } from "../ui/Devices";
import { Failure } from "../ui/Failure";
import { useProjects } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { Time } from "../ui/Time";

/** Devices that are kept for a project for some hours: others begin nothing there. */
export function Reservations() {
  const queries = useQueryClient();
  const devices = useDevices();
  const projects = useProjects();
  const [device, setDevice] = useState("");
  const [project, setProject] = useState("");
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const again = () => queries.invalidateQueries({ queryKey: ["reservations"] });
  const kept = useQuery({
    queryKey: ["reservations"],
    queryFn: () => answer(api.GET("/api/v1/reservations")).then((found) => found.items),
    refetchInterval: 30_000,
  });
  const chosen = { device: device || devices.data?.[0]?.name, project: project || projects.data?.[0]?.name };
  const reserve = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/devices/{device}/reservations", {
          params: { path: { device: chosen.device ?? "" } },
          body: {
            project: chosen.project ?? "",
            start: start ? new Date(start).toISOString() : new Date().toISOString(),
            end: new Date(end).toISOString(),
          },
        }),
      ),
    onSuccess: again,
  });
  const cancel = useMutation({
    mutationFn: (reservation: string) =>
      answer(api.DELETE("/api/v1/reservations/{reservation}", { params: { path: { reservation } } })),
    onSuccess: again,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    reserve.mutate();
  }
  return (
    <section>
      <h2>Reservations</h2>
      <form className="row" onSubmit={submit}>
        <label>
          Device
          <select value={chosen.device ?? ""} onChange={(e) => setDevice(e.target.value)}>
            {devices.data?.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
        <label>
          For the project
          <select value={chosen.project ?? ""} onChange={(e) => setProject(e.target.value)}>
            {projects.data?.map((one) => (
              <option key={one.id}>{one.name}</option>
            ))}
          </select>
        </label>
        <label>
          From (empty: now)
          <input type="datetime-local" value={start} onChange={(e) => setStart(e.target.value)} />
        </label>
        <label>
          Until
          <input required type="datetime-local" value={end} onChange={(e) => setEnd(e.target.value)} />
        </label>
        <button type="submit" disabled={reserve.isPending || !chosen.device || !chosen.project}>
          Reserve
        </button>
      </form>
      {(reserve.error ?? cancel.error) && <Failure error={reserve.error ?? cancel.error} />}
      <Loaded query={kept}>
        {(found) =>
          found.length === 0 ? (
            <p className="quiet">None.</p>
          ) : (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Device</th>
                    <th scope="col">For</th>
                    <th scope="col">From</th>
                    <th scope="col">Until</th>
                    <th scope="col">
                      <span className="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((one) => (
                    <tr key={one.id}>
                      <td className="long">{one.device}</td>
                      <td>{one.project ?? "another project"}</td>
                      <td>
                        <Time at={one.start} />
                      </td>
                      <td>
                        <Time at={one.end} />
                      </td>
                      <td>
                        <button
                          type="button"
                          className="small"
                          aria-label={`Cancel the reservation of ${one.device}`}
                          disabled={cancel.isPending}
                          onClick={() => cancel.mutate(one.id)}
                        >
                          Cancel
                        </button>
                      </td>
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
