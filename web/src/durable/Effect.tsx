// What a call does outside: what its tool declares, and its arguments.
import { Badge } from '../ui/Badge.tsx';
import type { Tone } from '../ui/StatusDot.tsx';
import { effectWords } from './words.ts';

/** Colours of effects: what must not happen twice stands out. */
const tones: Readonly<Record<string, Tone>> = { once: 'wait', query: 'info', idempotent: 'neutral', frontend: 'think' };

export const EffectBadge = ({ effect }: { effect: string }) => <Badge tone={tones[effect] ?? 'neutral'} title={effectWords[effect]}>{effect}</Badge>;

/** Arguments as they are read: in lines if these are few, and else as close as JSON can be. */
export function argumentsText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
  if (text === '{}') return 'no arguments';
  return typeof value === 'string' || text.split('\n').length <= 6 ? text : text.replace(/(?<=[[{])\n\s*|\n\s*(?=[\]}])/g, '').replace(/\n\s*/g, ' ');
}
