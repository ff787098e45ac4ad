// The announcements of a conversation for screen readers: starts and ends, never the growing text.
import { useEffect, useRef } from 'react';
import { useAnnounce } from '../app/context.tsx';
import type { Standing } from '../log/store.ts';
import type { CallItem, View } from '../log/view.ts';

/** The beginning of an answer: its first paragraph. */
const beginning = (text: string): string => (text.split('\n\n')[0] ?? '').slice(0, 400);

/** The announcement of a run's end. */
export function endOf(view: View): string {
  if (view.status === 'waiting') return `An answer is needed: ${view.interrupts[0]?.message ?? 'see above the message field'}`;
  if (view.status === 'stopped') return 'Stopped.';
  if (view.status === 'failed') {
    const note = view.items.findLast((i) => i.kind === 'note' && i.tone === 'error');
    return note?.kind === 'note' ? note.text : 'The run failed.';
  }
  const last = view.items.findLast((i) => i.kind === 'text' && i.role === 'assistant');
  return `${last?.kind === 'text' ? beginning(last.text) : ''} Message complete.`.trim();
}

const running = (view: View): readonly CallItem[] => view.items.slice(-20).filter((i): i is CallItem => i.kind === 'call' && i.status === 'running');

export function useAnnouncements(view: View, standing: Standing, quiet: boolean): void {
  const announce = useAnnounce();
  const before = useRef({ view, standing });
  useEffect(() => {
    const old = before.current;
    before.current = { view, standing };
    if (quiet || old.standing === 'loading') return;
    if (standing === 'reconnecting' && old.standing !== 'reconnecting') announce('Connection lost, reconnecting.');
    else if (old.standing === 'reconnecting' && standing !== 'reconnecting') announce('Connected again.');
    if (view.status !== old.view.status || view.runId !== old.view.runId) {
      if (view.status === 'running') announce('The assistant is responding.');
      else if (view.status !== 'idle') announce(endOf(view), view.status === 'waiting' || view.status === 'failed' ? 'assertive' : 'polite');
      return;
    }
    if (view.items === old.view.items || view.status !== 'running') return;
    const started = running(view).find((c) => !running(old.view).some((o) => o.key === c.key));
    if (started) announce(`Tool ${started.name} started.`);
  });
}
