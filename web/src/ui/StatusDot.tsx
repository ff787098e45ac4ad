import './StatusDot.css';

export type Tone = 'neutral' | 'active' | 'good' | 'wait' | 'bad' | 'info' | 'think';

/**
 * A dot that shows how something stands. Each tone has a form of its own, so that colours
 * are not all that tells them apart; the words beside it, or label, say it to everybody.
 */
export function StatusDot({ tone, label }: { tone: Tone; label?: string }) {
  return <span className="status-dot" data-tone={tone} role={label ? 'img' : undefined} aria-label={label} aria-hidden={label ? undefined : true} title={label} />;
}
