// What a tool's effect means for whoever calls it by hand.
import type { Tone } from '../ui/StatusDot.tsx';

export interface Effect {
  readonly name: string;
  readonly tone: Tone;
  /** What it says of the tool. */
  readonly about: string;
  /** What to know before it is called; '' if there is nothing to fear. */
  readonly warning: string;
}

const effects: Record<string, Omit<Effect, 'name'>> = {
  pure: { tone: 'good', about: 'It only reads or computes.', warning: '' },
  idempotent: { tone: 'neutral', about: 'Running it twice is the same as running it once.', warning: 'It may change something outside of this server. Running it again with the same key changes nothing more.' },
  query: { tone: 'wait', about: 'It has an effect, and can find out whether that has happened.', warning: 'It changes something outside of this server.' },
  once: { tone: 'wait', about: 'It has an effect, and must not run twice.', warning: 'It changes something outside of this server, and each call does so again.' },
};

export const effectOf = (name: string): Effect => ({ name, ...(effects[name] ?? { tone: 'wait', about: 'What it does outside is not known.', warning: 'What it changes is not known.' }) });
