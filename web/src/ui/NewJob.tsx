import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useNavigate } from "react-router";
import { answer, api } from "../api/client";
import { Dialog } from "./Dialog";
import { Failure } from "./Failure";

/** The common job: a shell command on given resources. Everything else is in `easel run --file`. */
export function NewJob({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [form, setForm] = useState({
    name: "job",
    command: "",
    code: "",
    input: "",
    vcpu: "1",
    memory: "1024",
    gpus: "0",
  });
  const set = (name: keyof typeof form) => (event: { target: { value: string } }) =>
    setForm({ ...form, [name]: event.target.value });
  const submit = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/projects/{project}/jobs", {
          params: { path: { project } },
          body: {
            name: form.name,
            run: { kind: "command", argv: ["sh", "-c", form.command] },
            code: form.code || null,
            input: form.input || null,
            resources: { vcpu: Number(form.vcpu), memory_mb: Number(form.memory), gpus: Number(form.gpus) },
          },
        }),
      ),
    onSuccess: (job) => navigate(`/p/${encodeURIComponent(project)}/jobs/${job.id}`),
  });
  function send(event: FormEvent) {
    event.preventDefault();
    submit.mutate();
  }
  return (
    <Dialog title="New job" onClose={onClose}>
      <form className="stack" onSubmit={send}>
        <label>
          Name
          <input required maxLength={100} value={form.name} onChange={set("name")} />
        </label>
        <label>
          Command
          <textarea
            required
            rows={4}
            spellCheck={false}
            value={form.command}
            onChange={set("command")}
            placeholder="python train.py --epochs 5"
          />
        </label>
        <div className="row">
          <label>
            Code
            <input value={form.code} onChange={set("code")} placeholder="file set or /code.zip" />
          </label>
          <label>
            Input
            <input value={form.input} onChange={set("input")} placeholder="name:version" />
          </label>
        </div>
        <div className="row">
          <label>
            vCPU
            <input type="number" min="0.5" step="0.5" value={form.vcpu} onChange={set("vcpu")} />
          </label>
          <label>
            Memory, MB
            <input type="number" min="16" value={form.memory} onChange={set("memory")} />
          </label>
          <label>
            GPUs
            <input type="number" min="0" step="any" value={form.gpus} onChange={set("gpus")} />
          </label>
        </div>
        {submit.error && <Failure error={submit.error} />}
        <button type="submit" className="primary" disabled={submit.isPending}>
          Submit
        </button>
      </form>
    </Dialog>
  );
}
