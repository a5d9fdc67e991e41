import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { Link, Navigate, NavLink, Outlet, useLocation, useNavigate, useParams } from "react-router";
import { answer, api, type Project } from "../api/client";
import { problemFrom } from "../api/problem";
import { LiveProject, useConnection } from "../live/Live";
import { Session, useMe } from "../session";
import { isOpen, useDevices } from "./Devices";
import { linesFor } from "./inCode";
import { Loaded } from "./Loaded";
import { opensPalette, type Goal } from "./palette";
import { useTitles } from "./title";
import { Failure } from "./Failure";
import { rememberedTheme, setTheme, type Theme } from "./theme";

const LAST = "easel-project";
const Palette = lazy(() => import("./Palette"));
const InCode = lazy(() => import("./InCode"));

export function useProjects() {
  const path = { params: { query: { limit: 200 } } };
  return useQuery({
    queryKey: ["projects"],
    queryFn: () => answer(api.GET("/api/v1/projects", path)).then((page) => page.items),
  });
}

/** The name of the project in the address. */
export function useProject(): string {
  return useParams().project ?? "";
}

export function Frame() {
  return (
    <Session>
      <Inside />
    </Session>
  );
}

function Inside() {
  const project = useParams().project;
  const main = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  useTitles();
  useEffect(() => {
    main.current?.scrollTo(0, 0);
  }, [pathname]);
  const body = (
    <div className="frame">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <Bar />
      <Sections />
      <main id="main" ref={main} tabIndex={-1}>
        <NoSandbox />
        {project ? (
          <Admitted project={project}>
            <Outlet />
          </Admitted>
        ) : (
          <Outlet />
        )}
      </main>
    </div>
  );
  return project ? (
    <LiveProject key={project} project={project}>
      {body}
    </LiveProject>
  ) : (
    body
  );
}

/** One answer for a project that is not there or not yours, rather than one in each part of the page. */
function Admitted({ project, children }: { project: string; children: ReactNode }) {
  const found = useQuery({
    queryKey: ["projects", project],
    staleTime: 60_000,
    queryFn: () => answer(api.GET("/api/v1/projects/{project}", { params: { path: { project } } })),
  });
  const status = found.error ? problemFrom(found.error).status : 200;
  if (status === 403 || status === 404)
    return (
      <Failure
        error={found.error}
        titles={{ 404: "No such project here", 403: "Not allowed" }}
        again={() => void found.refetch()}
      />
    );
  return children;
}

/** On every page while some device runs commands of users without a sandbox. */
function NoSandbox() {
  const names = (useDevices().data ?? []).filter(isOpen).map((device) => device.name);
  if (names.length === 0) return null;
  return (
    <p className="no-sandbox" role="alert">
      <strong>No sandbox:</strong> jobs on {names.join(", ")} can read and change whatever the worker can,
      because an admin allowed it (<code>unsandboxed</code>). Run only code that you trust.
    </p>
  );
}

function Bar() {
  const me = useMe();
  const project = useParams().project;
  return (
    <header className="bar">
      <Link to="/" className="brand">
        <img src="/easel.svg" alt="" width="26" height="26" /> <span>Easel</span>
      </Link>
      <Switcher />
      <span className="spring" />
      {project && <GoTo project={project} />}
      <ShowInCode />
      {project && <Pulse />}
      <ThemeChoice />
      <Link to="/account" className="me" title="Your account and tokens">
        <span dir="auto">{me.user.name}</span>
      </Link>
    </header>
  );
}

/** The way to everything by its name, also by Ctrl-K. */
function GoTo({ project }: { project: string }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!opensPalette(event)) return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  const pages: Goal[] = SECTIONS.map(([path, title]) => ({
    title,
    kind: "Page",
    to: `/p/${encodeURIComponent(project)}${path && `/${path}`}`,
  }));
  return (
    <>
      <button
        type="button"
        className="small goto"
        aria-keyshortcuts="Control+K"
        onClick={() => setOpen(true)}
      >
        <i aria-hidden="true">⌕</i>{" "}
        <span>
          Go to <kbd>Ctrl K</kbd>
        </span>
      </button>
      {open && (
        <Suspense fallback={null}>
          <Palette project={project} pages={pages} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

/** What the page shows, as lines for a shell and for Python. */
function ShowInCode() {
  const { pathname, search } = useLocation();
  const [open, setOpen] = useState(false);
  const lines = linesFor(pathname, search);
  if (!lines) return null;
  return (
    <>
      <button type="button" className="small goto" title="This page in code" onClick={() => setOpen(true)}>
        <i aria-hidden="true">{"</>"}</i> <span>In code</span>
      </button>
      {open && (
        <Suspense fallback={null}>
          <InCode lines={lines} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

function Switcher() {
  const projects = useProjects();
  const current = useParams().project ?? "";
  const navigate = useNavigate();
  useEffect(() => {
    if (current) remember(current);
  }, [current]);
  const names = (projects.data ?? []).map((project: Project) => project.name);
  if (!current && names.length === 0) return null;
  return (
    <label className="switcher">
      <span className="unseen">Project</span>
      <select
        value={current}
        onChange={(event) => void navigate(`/p/${encodeURIComponent(event.target.value)}`)}
      >
        {!current && <option value="">Choose a project</option>}
        {current && !names.includes(current) && <option value={current}>{current}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

const WORDS = {
  connecting: "Connecting…",
  live: "Live",
  waiting: "Reconnecting…",
  refused: "Not live",
} as const;

function Pulse() {
  const state = useConnection();
  return (
    <span className={`pulse ${state}`} role="status">
      {WORDS[state]}
    </span>
  );
}

function ThemeChoice() {
  const [theme, choose] = useState<Theme>(rememberedTheme);
  return (
    <label className="theme">
      <span className="unseen">Colours</span>
      <select
        value={theme}
        onChange={(event) => {
          const next = event.target.value as Theme;
          setTheme(next);
          choose(next);
        }}
      >
        <option value="system">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

const SECTIONS: [string, string][] = [
  ["", "Overview"],
  ["apps", "Apps"],
  ["studies", "Studies"],
  ["jobs", "Jobs"],
  ["pipelines", "Pipelines"],
  ["lake", "Lake"],
  ["provenance", "Provenance"],
  ["provision", "Provisioning"],
  ["simulator", "Simulator"],
  ["spending", "Spending"],
  ["people", "People"],
];

function Sections() {
  const here = useParams().project;
  const projects = useProjects();
  const known = projects.data?.map((one) => one.name);
  // On the account and the platform page the way back into the project stays.
  const project = here ?? known?.find((name) => name === remembered()) ?? known?.[0];
  const me = useMe();
  const list = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  useEffect(() => {
    // On a phone the sections are one line, wider than the window.
    list.current
      ?.querySelector('[aria-current="page"]')
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [pathname]);
  return (
    <nav className="sections" aria-label="Sections" ref={list}>
      {project &&
        SECTIONS.map(([path, title]) => (
          <NavLink key={path} to={`/p/${encodeURIComponent(project)}${path && `/${path}`}`} end={path === ""}>
            {title}
          </NavLink>
        ))}
      <span className="rule" />
      {me.user.platform_admin && <NavLink to="/platform">Platform</NavLink>}
      {me.user.platform_admin && <NavLink to="/audit">Audit</NavLink>}
      <NavLink to="/messages">Messages</NavLink>
      <NavLink to="/account">Account</NavLink>
      <a href="/docs/">Documents</a>
    </nav>
  );
}

/** The project of last time, or the only one, or a choice. */
export function Home() {
  const projects = useProjects();
  const me = useMe();
  return (
    <Loaded query={projects}>
      {(found) => {
        const wanted = found.find((project) => project.name === remembered()) ?? found[0];
        if (wanted) return <Navigate replace to={`/p/${encodeURIComponent(wanted.name)}`} />;
        return me.user.platform_admin ? (
          <Navigate replace to="/platform" />
        ) : (
          <p>You are in no project yet. Ask an admin to let you in.</p>
        );
      }}
    </Loaded>
  );
}

function remember(project: string): void {
  try {
    localStorage.setItem(LAST, project);
  } catch {
    // storage may be forbidden
  }
}

function remembered(): string | null {
  try {
    return localStorage.getItem(LAST);
  } catch {
    return null;
  }
}
