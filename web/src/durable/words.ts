// The texts about checkpoints, seams and calls.
import { span } from '../log/words.ts';
import type { SeamItem } from '../log/view.ts';
import { shortName } from './hue.ts';
import type { Checkpoint } from '../api/types.ts';

/** A checkpoint's kind, in a few words. */
export function titleOf({ metadata, status }: Checkpoint): string {
  const { source, step, label } = metadata;
  if (label) return label;
  if (source === 'input') return 'Run accepted';
  if (source === 'fork') return metadata.parentThreadId ? 'Forked' : 'Went back';
  if (source === 'update') return 'Marked by hand';
  if (status === 'interrupted') return 'Waiting for a person';
  if (status === 'stopped') return 'Run stopped';
  if (status === 'idle') return 'Run finished';
  return `Ready for iteration ${step}`;
}

/** Between which iterations a checkpoint was taken: "before iteration 2". Empty where its title says all. */
export const placeOf = ({ metadata: { source, step }, status }: Checkpoint): string => (source === 'input' ? 'before the first iteration' : status === 'idle' ? '' : `before iteration ${step}`);

/** "9 messages". */
export const messages = (count: number | undefined): string => (count === undefined ? '' : `${count.toLocaleString('en')} ${count === 1 ? 'message' : 'messages'}`);

/** The number in a checkpoint's id, without the zeros. */
export const numberOf = (id: string): string => id.replace(/^0+(?=\d)/, '');

/** The facts about a death: who, who went on, how long it took. */
export interface SeamWords {
  /** In the text: "died here · went on 0.9 s later". */
  readonly short: string;
  /** For everybody who reads or hears it: whole sentences. */
  readonly sentence: string;
}

/** The text of a seam. */
export function seamWords({ reason, from, process, gapMs, outageMs, cut }: SeamItem): SeamWords {
  const handed = reason === 'handed_over';
  // Nobody knows when a process died that was not saying anything.
  const after = cut === undefined ? undefined : gapMs ?? outageMs;
  // A number and its unit stay on one line.
  const later = after === undefined ? '' : ` ${span(after).replaceAll(' ', '\u00a0')} later`;
  const restarted = process !== '' && process === from;
  const who = from === '' ? 'The process' : `Process ${shortName(from)}`;
  const left = handed ? `${who} shut down here and handed the run over.` : `${who} died here.`;
  const next = restarted ? 'It was started again and' : process === '' ? 'Another one' : `Process ${shortName(process)}`;
  return { short: `${handed ? 'handed over' : 'died'} here · went on${later}`, sentence: `${left} ${next} went on${later}.` };
}
