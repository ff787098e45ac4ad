// How a thread stands, in words and as a dot.
import type { ThreadInfo } from '../api/types.ts';
import type { Tone } from '../ui/StatusDot.tsx';

export interface ThreadStanding {
  readonly tone: Tone;
  readonly text: string;
}

export function standingOf(thread: ThreadInfo): ThreadStanding {
  if (thread.waiting) return { tone: 'wait', text: 'waits for a server' };
  switch (thread.status) {
    case 'running': return { tone: 'active', text: 'running' };
    case 'interrupted': return { tone: 'wait', text: 'waiting for you' };
    case 'stopped': return thread.outcome === 'error' ? { tone: 'bad', text: 'failed' } : { tone: 'neutral', text: 'unfinished' };
    case 'unreadable': return { tone: 'bad', text: 'unreadable' };
    case 'idle':
      if (thread.outsideCalls?.length) return { tone: 'wait', text: `waits for ${thread.outsideCalls.map((c) => c.toolName).join(', ')}` };
      if (thread.pendingToolCallIds?.length) return { tone: 'wait', text: 'waits for a tool' };
      return thread.outcome === 'cancelled' ? { tone: 'neutral', text: 'stopped' } : { tone: 'good', text: 'done' };
  }
}

/** The name of a thread in a list. */
export const nameOf = (thread: Pick<ThreadInfo, 'id' | 'title'>): string => thread.title || `Thread ${thread.id.slice(0, 8)}`;

/** The threads that fit every word of what is searched. */
export function matching(threads: readonly ThreadInfo[], wanted: string): readonly ThreadInfo[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return threads;
  return threads.filter((t) => {
    const said = `${nameOf(t)} ${t.id} ${t.agent} ${standingOf(t).text}`.toLowerCase();
    return words.every((w) => said.includes(w));
  });
}
