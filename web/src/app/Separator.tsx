// The line between two regions, which one drags, or moves with the arrow keys.
import { useRef, type KeyboardEvent, type PointerEvent } from 'react';

export interface SeparatorProps {
  /** The region whose width it changes: "threads". */
  label: string;
  /** The id of the region whose width it is. */
  controls: string;
  /** On which side of the separator that region is. */
  side: 'left' | 'right';
  width: number;
  min: number;
  max: number;
  initial: number;
  onChange: (width: number) => void;
}

const step = 16;

export function Separator({ label, controls, side, width, min, max, initial, onChange }: SeparatorProps) {
  const drag = useRef<{ x: number; width: number } | null>(null);
  const sign = side === 'left' ? 1 : -1;
  const set = (next: number) => onChange(Math.round(Math.min(max, Math.max(min, next))));
  /** The width that one sees: less than was asked for where there is no room. */
  const seen = () => Math.min(width, document.getElementById(controls)?.getBoundingClientRect().width || width);
  const onPointerDown = (e: PointerEvent<HTMLDivElement>) => {
    if (e.button !== 0) return;
    e.currentTarget.setPointerCapture(e.pointerId);
    drag.current = { x: e.clientX, width: seen() };
  };
  const onPointerMove = (e: PointerEvent) => {
    if (drag.current) set(drag.current.width + sign * (e.clientX - drag.current.x));
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const to = { ArrowLeft: seen() - sign * step, ArrowRight: seen() + sign * step, Home: min, End: max, Enter: initial }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    set(to);
  };
  return (
    // The element that axe and browsers call a window splitter: a separator that has the focus.
    <div
      role="separator" className="separator" data-side={side} aria-orientation="vertical" aria-label={`Width of ${label}`} aria-controls={controls}
      aria-valuenow={width} aria-valuemin={min} aria-valuemax={max} aria-valuetext={`${width} pixels`} tabIndex={0}
      onPointerDown={onPointerDown} onPointerMove={onPointerMove} onPointerUp={() => { drag.current = null; }} onPointerCancel={() => { drag.current = null; }}
      onDoubleClick={() => set(initial)} onKeyDown={onKeyDown}
    />
  );
}
