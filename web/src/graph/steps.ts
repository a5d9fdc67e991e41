/** The edges of a pipeline: from what is needed to what needs it; needs that are no step of it are left out. */
export function needsOf(steps: { name: string; needs: string[] }[]): { source: string; target: string }[] {
  const known = new Set(steps.map((step) => step.name));
  return steps.flatMap((step) =>
    step.needs.filter((name) => known.has(name)).map((source) => ({ source, target: step.name })),
  );
}
