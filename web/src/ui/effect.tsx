// The meaning of a tool's effect: the one table of its words and colours. What must not happen
// twice stands out.
import { Badge } from './Badge.tsx';
import type { Tone } from './StatusDot.tsx';

export interface Effect {
  readonly name: string;
  readonly tone: Tone;
  /** Its meaning for the tool. */
  readonly about: string;
  /** The effect of a crash on a call that has started. */
  readonly crash?: string;
  /** The warning before another call is made; undefined if there is nothing to fear. */
  readonly again?: string;
}

const effects: Readonly<Record<string, Omit<Effect, 'name'>>> = {
  pure: {
    tone: 'good', about: 'It only reads or computes.',
    crash: 'It changes nothing, so after a crash it simply runs again.',
  },
  idempotent: {
    tone: 'neutral', about: 'Running it twice with one key is the same as running it once.',
    crash: 'Its intent is saved. After a crash it runs again with the same key, which has no further effect.',
    again: 'It may change something outside of this server. Only another call with the same key has no further effect.',
  },
  query: {
    tone: 'info', about: 'It has an effect, and after a crash the service can be asked whether that has happened.',
    again: 'It changes something outside of this server. The service can be asked what became of it.',
  },
  once: {
    tone: 'wait', about: 'It has an effect, and is never started twice.',
    crash: 'Its intent is saved. After a crash it does not run again by itself: it is in doubt.',
    again: 'It changes something outside of this server, and each call does so again. It must not happen twice by accident.',
  },
  frontend: {
    tone: 'think', about: 'It runs in a browser, not on the server.',
    again: 'It runs in a browser, not on the server.',
  },
};

const unknown: Omit<Effect, 'name'> = {
  tone: 'wait', about: 'Its effects outside are not known.',
  again: 'The agent no longer has this tool, so nobody can say what another call would do.',
};

export const effectOf = (name: string): Effect => ({ name, ...(effects[name] ?? unknown) });

export function EffectBadge({ effect }: { effect: string }) {
  const { name, tone, about } = effectOf(effect);
  return <Badge tone={tone} title={about}>{name}</Badge>;
}
