import type { ReactNode } from 'react';
import './Badge.css';
import type { Tone } from './StatusDot.tsx';

/** A word about something: a state, a kind, a number. */
export function Badge({ tone = 'neutral', title, children }: { tone?: Tone; title?: string; children: ReactNode }) {
  return <span className="badge" data-tone={tone} title={title}>{children}</span>;
}
