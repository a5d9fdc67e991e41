import { NavLink } from "react-router";
import { useProject } from "./Frame";

export function LakeTabs() {
  const base = `/p/${encodeURIComponent(useProject())}/lake`;
  return (
    <>
      <header className="head">
        <h1>Lake</h1>
      </header>
      <nav className="tabs" aria-label="Parts of the lake">
        <NavLink to={base} end>
          Files
        </NavLink>
        <NavLink to={`${base}/sets`}>File sets</NavLink>
        <NavLink to={`${base}/search`}>Search</NavLink>
      </nav>
    </>
  );
}
