import { useState } from "react";

/** A token's secret, which the server tells only once. */
export function Secret({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <div className="notice" role="status">
      <p>Copy it now: it is shown only this once.</p>
      <p className="secret">
        <code>{text}</code>
        <button
          type="button"
          onClick={() => void navigator.clipboard?.writeText(text).then(() => setCopied(true))}
          hidden={!navigator.clipboard}
        >
          {copied ? "Copied" : "Copy"}
        </button>
      </p>
    </div>
  );
}
