/** A job's state in a word and a colour. */
export function State({ state, wanted }: { state: string; wanted?: boolean }) {
  const over = isOver(state);
  return <span className={`state ${state}`}>{wanted && !over ? `${state}, being killed` : state}</span>;
}

export function isOver(state: string): boolean {
  return state === "finished" || state === "failed" || state === "killed";
}
