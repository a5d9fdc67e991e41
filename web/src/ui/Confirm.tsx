import { useState, type ReactNode } from "react";
import { Dialog } from "./Dialog";

/** A button that asks before it does something that cannot be taken back. */
export function Confirm({
  label,
  title,
  children,
  disabled = false,
  onConfirm,
}: {
  label: string;
  title: string;
  children: ReactNode;
  disabled?: boolean;
  onConfirm: () => void;
}) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button type="button" className="danger" disabled={disabled} onClick={() => setAsking(true)}>
        {label}
      </button>
      {asking && (
        <Dialog title={title} onClose={() => setAsking(false)}>
          <div className="stack">
            {children}
            <div className="row">
              <button
                type="button"
                className="danger"
                autoFocus
                onClick={() => {
                  setAsking(false);
                  onConfirm();
                }}
              >
                {title}
              </button>
              <button type="button" onClick={() => setAsking(false)}>
                Cancel
              </button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}
