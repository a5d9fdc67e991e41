import { useRef, useState, type PointerEvent } from "react";

const SIDE = 280;

/** A small sheet to draw on, in white on black as scanned digits are, or the other way round. */
export function Draw({ onDone }: { onDone: (picture: Blob) => void }) {
  const sheet = useRef<HTMLCanvasElement>(null);
  const [inverse, setInverse] = useState(false);
  const drawing = useRef(false);
  const pen = () => sheet.current?.getContext("2d") ?? null;
  function clear(ground = inverse) {
    const context = pen();
    if (!context) return;
    context.fillStyle = ground ? "#fff" : "#000";
    context.fillRect(0, 0, SIDE, SIDE);
  }
  function begin(event: PointerEvent<HTMLCanvasElement>) {
    const context = pen();
    if (!context) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    drawing.current = true;
    context.lineWidth = 20;
    context.lineCap = context.lineJoin = "round";
    context.strokeStyle = inverse ? "#000" : "#fff";
    context.beginPath();
    context.moveTo(...place(event));
  }
  function move(event: PointerEvent<HTMLCanvasElement>) {
    const context = pen();
    if (!drawing.current || !context) return;
    context.lineTo(...place(event));
    context.stroke();
  }
  function end() {
    if (drawing.current) sheet.current?.toBlob((picture) => picture && onDone(picture), "image/png");
    drawing.current = false;
  }
  return (
    <div className="draw">
      <canvas
        ref={(canvas) => {
          if (canvas && !sheet.current) {
            sheet.current = canvas;
            clear();
          }
        }}
        width={SIDE}
        height={SIDE}
        role="img"
        aria-label="Draw here with a pointer"
        onPointerDown={begin}
        onPointerMove={move}
        onPointerUp={end}
        onPointerCancel={end}
      />
      <div className="row">
        <button type="button" onClick={() => clear()}>
          Clear the sheet
        </button>
        <label className="check">
          <input
            type="checkbox"
            checked={inverse}
            onChange={(event) => {
              setInverse(event.target.checked);
              clear(event.target.checked);
            }}
          />{" "}
          black on white
        </label>
      </div>
    </div>
  );
}

function place(event: PointerEvent<HTMLCanvasElement>): [number, number] {
  const box = event.currentTarget.getBoundingClientRect();
  return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
}
