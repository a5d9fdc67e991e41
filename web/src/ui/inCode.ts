/** Lines for a shell and for Python that show what a page shows. */
export type Lines = { cli: string[]; python: string[] };

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** A word as a shell reads it back. */
export function word(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Text as Python reads it back. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

type Ask = (name: string, address: URLSearchParams) => Lines;

/** By the first part of a project's address; the second part, where there is one, is a name. */
const PAGES: Record<string, Ask> = {
  "": () => ({
    cli: ["easel devices", "easel queues ls", "easel jobs ls --watch", "easel bills report"],
    python: ["print(client.queues.use_over_time(24))", ...each("client.jobs.list()", "job.name, job.state")],
  }),
  apps: () => ({
    cli: ["easel learn my-table.csv", "easel apps ls --watch"],
    python: each("client.apps.list()", "app.name, app.best"),
  }),
  "apps/": (name) => ({
    cli: [
      `easel apps show ${word(name)}`,
      `easel feed ${word(name)} more.csv`,
      `easel infer ${word(name)} new.csv`,
      `easel apps report ${word(name)}`,
      `easel why ${word(name)}`,
    ],
    python: [
      `print(client.apps.get(${quoted(name)}).best)`,
      `client.apps.feed_path(${quoted(name)}, "more.csv")`,
      `print(client.apps.infer(${quoted(name)}, [...]).answers)`,
    ],
  }),
  studies: () => ({
    cli: ["easel studies ls --watch", "easel studies run study.yaml"],
    python: each("client.studies.list()", "study.name, study.best"),
  }),
  "studies/": (name) => ({
    cli: ["show", "best", "importances", "verify"]
      .map((verb) => `easel studies ${verb} ${word(name)}`)
      .concat(`easel studies export ${word(name)} points.csv`),
    python: [
      `print(client.studies.get(${quoted(name)}).best)`,
      ...each(`client.studies.points(${quoted(name)})`, "point.number, point.point, point.values"),
      `print(client.studies.importances(${quoted(name)}))`,
    ],
  }),
  jobs: (_, address) => {
    const state = address.get("state");
    const only = state && state !== "active" ? state : null;
    return {
      cli: [`easel jobs ls${only ? ` --state ${word(only)}` : ""} --watch`, "easel run -- python train.py"],
      python: [
        ...each(
          `client.jobs.list(${only ? `filter=[${quoted(`state:eq:${only}`)}]` : ""})`,
          "job.name, job.state",
        ),
        'job = client.jobs.submit(["python", "train.py"])',
      ],
    };
  },
  "jobs/": (id) => ({
    cli: [
      `easel jobs show ${word(short(id))}`,
      `easel logs -f ${word(short(id))}`,
      `easel rerun ${word(short(id))}`,
      `easel notes add ${word(short(id))} 'what you saw'`,
    ],
    python: [
      `job = client.jobs.get(${quoted(id)})`,
      "print(job.wait().state)",
      ...each("job.logs()", "line.text"),
    ],
  }),
  "jobs/compare": (_, address) => {
    const [one = "ONE", two = "TWO"] = address.getAll("job");
    return {
      cli: [`easel jobs compare ${word(short(one))} ${word(short(two))}`],
      python: [`print(client.jobs.compare(${quoted(one)}, ${quoted(two)}))`],
    };
  },
  pipelines: () => ({
    cli: ["easel pipelines run pipeline.yaml", "easel pipelines ls"],
    python: each("client.pipelines.list()", "pipeline.name"),
  }),
  "pipelines/": (id) => ({
    cli: [`easel pipelines show ${word(id)}`, `easel pipelines rerun ${word(id)}`],
    python: [`print(client.pipelines.get(${quoted(id)}))`],
  }),
  lake: (_, address) => {
    const place = address.get("file") ?? address.get("in") ?? "/";
    return {
      cli: [`easel ls ${word(place)}`, `easel get ${word(place)} .`, "easel put my-folder /my-folder/"],
      python: [
        `client.lake.download(${quoted(place)}, ".")`,
        'client.lake.upload("my-folder", "/my-folder/")',
      ],
    };
  },
  "lake/sets": (_, address) => {
    const name = address.get("set");
    return name
      ? {
          cli: [`easel filesets ls ${word(name)}`, `easel get ${word(`/@${name}`)} .`],
          python: [`client.lake.download(${quoted(`/@${name}`)}, ".")`],
        }
      : { cli: ["easel filesets ls"], python: ['client.lake.create_file_set("name", ["/folder/"])'] };
  },
  "lake/search": () => ({
    cli: ["easel find jobs 'accuracy > 0.9'"],
    python: each('client.lake.find("job", "accuracy > 0.9")', "job.name, job.tags"),
  }),
  provenance: (_, address) => {
    const from = address.get("from") ?? "";
    const forward = address.get("direction") === "forward";
    return {
      cli: [`easel trace${from ? ` ${word(from)}` : ""}${forward ? " --forward" : ""}`],
      python: [`print(client.lake.trace(${quoted(from)}))`],
    };
  },
  provision: () => ({
    cli: ["easel profiles ls", "easel estimate NAME", "easel provision NAME --max-cost 2"],
    python: each("client.profiles.list()", "profile.name"),
  }),
  simulator: () => ({ cli: ["easel simulate"], python: ["print(client.simulate())"] }),
  spending: () => ({
    cli: ["easel bills report --by user", "easel bills budget --set 100"],
    python: ['print(client.bills.report("user"))', "print(client.bills.budget())"],
  }),
  people: () => ({
    cli: ["easel users ls", "easel users add ana --role member"],
    python: each("client.users.list()", "user.name, user.role"),
  }),
};

function short(id: string): string {
  return id.startsWith("job_") ? id.slice(-6) : id;
}

/** A loop in Python over what `all` gives; `shown` begins with the name of one. */
function each(all: string, shown: string): string[] {
  return [`for ${shown.split(".", 1)[0]} in ${all}:`, `    print(${shown})`];
}

/** The lines for an address of the dashboard; null for a page that has none. */
export function linesFor(path: string, search: string): Lines | null {
  const found = /^\/p\/([^/]+)(?:\/([^/]+)(?:\/([^/]+))?)?\/?$/.exec(path);
  if (!found) return null;
  const [project, page, name] = [found[1]!, found[2] ?? "", found[3]].map(
    (one) => one && decodeURIComponent(one),
  );
  const ask = PAGES[name ? `${page}/${name}` : page!] ?? PAGES[name ? `${page}/` : page!];
  if (!ask || project === undefined) return null;
  const { cli, python } = ask(name ?? "", new URLSearchParams(search));
  return {
    cli: [`export EASEL_PROJECT=${word(project)}`, ...cli],
    python: ["import easel", "", `client = easel.Client(project=${quoted(project)})`, ...python],
  };
}
