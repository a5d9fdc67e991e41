/** What a project has so far; undefined while it is not known yet. */
export type Standing = {
  jobs: number | undefined;
  apps: number | undefined;
  devices: number | undefined;
  members: number | undefined;
  budget: boolean | undefined;
};

export type Step = { text: string; done: boolean; to: string; command: string };
export type Steps = { who: string; steps: Step[] };

/** The first steps of each kind of user; null once somebody has run a job and declared an app, or nothing is known. */
export function firstSteps(has: Standing, admin: boolean): Steps[] | null {
  if (has.jobs === undefined || has.apps === undefined) return null;
  if (has.jobs > 0 && has.apps > 0) return null;
  const found: Steps[] = [
    {
      who: "To learn from examples",
      steps: [
        {
          text: "Say what goes in and what comes out, and feed examples",
          done: has.apps > 0,
          to: "apps",
          command: "easel learn data.csv",
        },
      ],
    },
    {
      who: "To run your own code",
      steps: [
        {
          text: "Send a command with its folder",
          done: has.jobs > 0,
          to: "jobs",
          command: "easel run -- python train.py",
        },
      ],
    },
  ];
  if (admin)
    found.push({
      who: "To look after it",
      steps: [
        {
          text: "Connect a machine to the pool",
          done: (has.devices ?? 0) > 0,
          to: "",
          command: "easel worker --server ADDRESS",
        },
        {
          text: "Let somebody in",
          done: (has.members ?? 0) > 1,
          to: "people",
          command: "easel users add NAME",
        },
        {
          text: "Set a budget",
          done: has.budget === true,
          to: "spending",
          command: "easel bills budget --set 200",
        },
      ],
    });
  return found;
}
