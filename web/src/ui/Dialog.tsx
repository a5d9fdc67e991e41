import { useEffect, useId, useRef, type ReactNode } from "react";

/** The browser's own modal: it keeps the focus inside, closes on Escape and gives the focus back. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  return (
    <dialog ref={box} aria-labelledby={heading} onClose={onClose}>
      <header>
        <h2 id={heading}>{title}</h2>
        <button type="button" className="plain" aria-label="Close" onClick={() => box.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}
