import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useNavigate } from "react-router";
import { answer, api } from "../api/client";
import {
  argumentsOf,
  excluded,
  useEstimates,
  type Limits,
  type Offer,
  type Profile,
  type Provisioned,
} from "../api/profiles";
import { money } from "../api/spending";
import { useCurrency } from "../session";
import { Failure } from "../ui/Failure";
import { count, duration, memory, moment, plural } from "../ui/format";
import { Picture } from "../ui/Picture";
import { frontOption, gridOption } from "./pictures";

type Form = {
  values: Record<string, string>;
  aim: "cheapest" | "fastest";
  minutes: string;
  cost: string;
  deadline: string;
  sure: boolean;
};

/** The whole grid in a picture, and the best size within the limits, which can be submitted. */
export function Sizes({ project, profile }: { project: string; profile: Profile }) {
  const wanted = argumentsOf(profile);
  const navigate = useNavigate();
  const currency = useCurrency();
  const [form, setForm] = useState<Form>({
    values: Object.fromEntries(wanted.map(({ name, seen }) => [name, String(seen.at(-1) ?? 1)])),
    aim: "cheapest",
    minutes: "",
    cost: "",
    deadline: "",
    sure: false,
  });
  const set = (change: Partial<Form>) => setForm({ ...form, ...change });
  const numbers = Object.fromEntries(Object.entries(form.values).map(([name, text]) => [name, Number(text)]));
  const usable = Object.values(numbers).every((value) => Number.isFinite(value) && value > 0);
  const confidence = form.sure ? 0.95 : null;
  const estimates = useEstimates(project, profile.name, usable ? numbers : null, confidence);
  const limits = limitsOf(form, Date.now());
  const ask = useMutation({
    mutationFn: (submit: boolean) =>
      answer(
        api.POST("/api/v1/projects/{project}/profiles/{name}/provision", {
          params: { path: { project, name: profile.name } },
          body: {
            values: numbers,
            aim: form.aim,
            max_seconds: form.minutes ? Number(form.minutes) * 60 : null,
            max_cost: form.cost ? Number(form.cost) : null,
            deadline: form.deadline ? new Date(form.deadline).toISOString() : null,
            confidence,
            submit,
          },
        }),
      ),
    onSuccess: (found) => {
      if (found.job) void navigate(`/p/${encodeURIComponent(project)}/jobs/${found.job.id}`);
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    ask.mutate(false);
  }
  return (
    <>
      <form className="row" onSubmit={submit}>
        {wanted.map(({ name, seen }) => (
          <label key={name}>
            {name}
            <input
              type="number"
              min="0"
              step="any"
              required
              value={form.values[name]}
              onChange={(e) => set({ values: { ...form.values, [name]: e.target.value } })}
              title={`profiled at ${seen.join(", ")}`}
            />
          </label>
        ))}
        <label>
          Want the
          <select value={form.aim} onChange={(e) => set({ aim: e.target.value as Form["aim"] })}>
            <option value="cheapest">cheapest</option>
            <option value="fastest">fastest</option>
          </select>
        </label>
        <label>
          Before
          <input
            type="datetime-local"
            value={form.deadline}
            onChange={(e) => set({ deadline: e.target.value })}
          />
        </label>
        <label>
          Within minutes
          <input
            type="number"
            min="0"
            step="any"
            value={form.minutes}
            onChange={(e) => set({ minutes: e.target.value })}
          />
        </label>
        <label>
          For at most, {currency}
          <input
            type="number"
            min="0"
            step="any"
            value={form.cost}
            onChange={(e) => set({ cost: e.target.value })}
          />
        </label>
        <label className="check">
          <input type="checkbox" checked={form.sure} onChange={(e) => set({ sure: e.target.checked })} /> with
          95 % confidence
        </label>
        <button type="submit" className="primary" disabled={ask.isPending}>
          Find the size
        </button>
      </form>
      {(ask.error ?? estimates.error) && <Failure error={ask.error ?? estimates.error} />}
      {ask.data && <Found found={ask.data} busy={ask.isPending} onSubmit={() => ask.mutate(true)} />}
      {estimates.data && <Pictures offers={estimates.data} limits={limits} found={ask.data ?? null} />}
    </>
  );
}

/** The tighter of a duration and a deadline. */
export function limitsOf(form: Pick<Form, "minutes" | "cost" | "deadline">, now: number): Limits {
  const seconds = [
    ...(form.minutes ? [Number(form.minutes) * 60] : []),
    ...(form.deadline ? [(new Date(form.deadline).getTime() - now) / 1000] : []),
  ];
  return {
    seconds: seconds.length > 0 ? Math.min(...seconds) : null,
    cost: form.cost ? Number(form.cost) : null,
  };
}

const SIZES: Record<string, string> = { memory_mb: "memory", vcpu: "vCPU", gpus: "GPUs" };

/** What of a size was not tried in the profile, where its time is a guess. */
export function beyondText(names: string[]): string {
  const told = names.map((name) => SIZES[name] ?? name).join(", ");
  return `No run of the profile had ${told} like this: the time is less sure.`;
}

export function offerText(offer: Offer, currency: string): string {
  const when = [
    offer.starts_at ? `starts about ${moment(offer.starts_at)}` : "never starts on the devices there are",
    ...(offer.ends_by ? [`ends by ${moment(offer.ends_by)}`] : []),
  ];
  const size = `${offer.vcpu} vCPU and ${memory(offer.memory_mb)}${offer.terms ? ` on ${offer.terms} devices` : ""}`;
  return `${size}: about ${duration(offer.seconds)}, ${money(offer.cost, currency)}; ${when.join(", ")}`;
}

function Found({ found, busy, onSubmit }: { found: Provisioned; busy: boolean; onSubmit: () => void }) {
  const currency = useCurrency();
  if (found.offer)
    return (
      <div className="notice finished" role="status">
        <p>{offerText(found.offer, currency)}.</p>
        {found.offer.extrapolated.length > 0 && (
          <p className="quiet">{beyondText(found.offer.extrapolated)}</p>
        )}
        <button type="button" disabled={busy} onClick={onSubmit}>
          Submit the job on this size
        </button>
      </div>
    );
  return (
    <div className="notice" role="status">
      <p>{found.why}</p>
      <ul>
        {(found.nearest ?? []).map((way) => (
          <li key={way.remedy}>
            {way.remedy}: {offerText(way.offer, currency)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Pictures({ offers, limits, found }: { offers: Offer[]; limits: Limits; found: Provisioned | null }) {
  const currency = useCurrency();
  const out = offers.filter((offer) => excluded(offer, limits) !== null).length;
  return (
    <>
      <div className="charts">
        <div className="card">
          <Picture
            title="Predicted runtime over vCPU and memory"
            about={`Predicted runtime of ${plural(offers.length, "size")} over vCPU and memory; ${out} are excluded by the limits and red`}
            option={gridOption(offers, limits, found?.offer ?? null, currency)}
            height={360}
          />
        </div>
        <div className="card">
          <Picture
            title="Cost over runtime"
            about={`Cost over predicted runtime of ${plural(offers.length, "size")}`}
            option={frontOption(offers, found?.front ?? [], limits, currency)}
            height={360}
          />
        </div>
      </div>
      <p className="quiet">
        Excluded by the limits: {count(out)} of {plural(offers.length, "size")}.
      </p>
    </>
  );
}
