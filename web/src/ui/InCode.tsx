import { useState } from "react";
import { Dialog } from "./Dialog";
import type { Lines } from "./inCode";

/** The same as the page in a shell and in Python, to be copied. */
export default function InCode({ lines, onClose }: { lines: Lines; onClose: () => void }) {
  return (
    <Dialog title="This page in code" onClose={onClose}>
      <Part title="Command line" lines={lines.cli} />
      <Part title="Python" lines={lines.python} />
      <p className="quiet">
        Log in once with <code>easel login {location.origin}</code>; Python takes the server and the token
        from there. <a href="/docs/">All documents</a>
      </p>
    </Dialog>
  );
}

function Part({ title, lines }: { title: string; lines: string[] }) {
  const [copied, setCopied] = useState(false);
  const text = lines.join("\n");
  return (
    <section>
      <header className="row">
        <h3>{title}</h3>
        <button
          type="button"
          className="small"
          aria-label={`Copy the lines for ${title}`}
          onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
        >
          {copied ? "Copied" : "Copy"}
        </button>
      </header>
      <pre tabIndex={0} aria-label={`${title}, lines to copy`}>
        {text}
      </pre>
    </section>
  );
}
