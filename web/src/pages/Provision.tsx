import { useState } from "react";
import { useSearchParams } from "react-router";
import { useProfiles, type Profile } from "../api/profiles";
import { useProject } from "../ui/Frame";
import { Loaded } from "../ui/Loaded";
import { NewProfile } from "../provision/NewProfile";
import { Sizes } from "../provision/Sizes";

/** How long a profiled command would take on every size, what it would cost, and the best size within limits. */
export default function Provision() {
  const project = useProject();
  const profiles = useProfiles(project);
  const [address, setAddress] = useSearchParams();
  const [creating, setCreating] = useState(false);
  return (
    <>
      <header className="head">
        <h1>Provisioning</h1>
        <span className="spring" />
        <button type="button" onClick={() => setCreating(true)}>
          Profile a command
        </button>
      </header>
      <Loaded query={profiles}>
        {(found) => {
          const fitted = found.filter((profile) => profile.state === "fitted");
          const chosen = fitted.find((profile) => profile.name === address.get("profile")) ?? fitted[0];
          return (
            <>
              <Waiting profiles={found.filter((profile) => profile.state !== "fitted")} />
              {chosen ? (
                <>
                  <div className="row">
                    <label>
                      Profile
                      <select
                        value={chosen.name}
                        onChange={(e) => setAddress({ profile: e.target.value }, { replace: true })}
                      >
                        {fitted.map((profile) => (
                          <option key={profile.name}>{profile.name}</option>
                        ))}
                      </select>
                    </label>
                  </div>
                  <pre tabIndex={0} aria-label="The profiled command">
                    {chosen.template}
                  </pre>
                  <Sizes key={chosen.id} project={project} profile={chosen} />
                </>
              ) : (
                <p className="quiet">
                  No command has been profiled yet. A profile runs a command on a few sizes and small
                  arguments, and learns from that how long it takes on others.
                </p>
              )}
            </>
          );
        }}
      </Loaded>
      {creating && <NewProfile project={project} onClose={() => setCreating(false)} />}
    </>
  );
}

function Waiting({ profiles }: { profiles: Profile[] }) {
  return profiles.map((profile) => (
    <p
      className={`notice ${profile.state === "failed" ? "failed" : ""}`}
      role="status"
      key={profile.id}
      dir="auto"
    >
      {profile.name}:{" "}
      {profile.state === "running"
        ? `its runs are under way, ${profile.done ?? 0} are done`
        : (profile.reason ?? profile.state)}
    </p>
  ));
}
