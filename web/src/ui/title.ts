import { useEffect } from "react";
import { useLocation } from "react-router";

const SECTIONS: Record<string, string> = {
  apps: "Apps",
  studies: "Studies",
  jobs: "Jobs",
  pipelines: "Pipelines",
  lake: "Lake",
  provenance: "Provenance",
  provision: "Provisioning",
  simulator: "Simulator",
  spending: "Spending",
  people: "People",
};
const ALONE: Record<string, string> = {
  account: "Account",
  audit: "Audit",
  device: "Log in another machine",
  messages: "Messages",
  platform: "Platform",
};
const PARTS: Record<string, string> = { compare: "Compare", sets: "File sets", search: "Search" };

/** What a browser's tab says of an address: the thing first, then where it is. `name` is known by the page alone. */
export function titleOf(pathname: string, name?: string): string {
  const [first = "", project, section, thing] = pathname.split("/").filter(Boolean).map(decoded);
  if (first !== "p" || !project) return [name ?? ALONE[first], "Easel"].filter(Boolean).join(" · ");
  const named = name ?? (thing && (PARTS[thing] ?? thing));
  const where = section ? (SECTIONS[section] ?? section) : "Overview";
  return [named, where, project, "Easel"].filter(Boolean).join(" · ");
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Names that pages have told, by address: whichever of page and frame comes last, the tab says the same. */
const names = new Map<string, string>();

/** Called once, by the frame. */
export function useTitles(): void {
  const { pathname } = useLocation();
  useEffect(() => {
    document.title = titleOf(pathname, names.get(pathname));
  }, [pathname]);
}

/** For a page whose address holds an id rather than a name. */
export function useTitle(name: string | undefined): void {
  const { pathname } = useLocation();
  useEffect(() => {
    if (name === undefined) return;
    names.set(pathname, name);
    document.title = titleOf(pathname, name);
  }, [pathname, name]);
}
