// A person's choices when they go back or fork, and the request that it makes.
import type { Travel } from '../api/actions.ts';
import type { PastEffect } from '../api/types.ts';

/** The events when the model makes a call again that has already happened. */
export type Again = 'recorded' | 'run';

export interface Choices {
  /** For each call that has happened outside. */
  readonly again: Readonly<Record<string, Again>>;
  /** Nothing runs that has no recorded result. */
  readonly onlyRecorded: boolean;
}

/** Whether there is a result that can be used again. */
export const hasResult = (effect: PastEffect): boolean => effect.reusable === true;

/** The proposal: nothing happens twice, and what failed may be tried again. */
export const proposed = (effects: readonly PastEffect[]): Choices => ({
  again: Object.fromEntries(effects.map((effect) => [effect.toolCallId, hasResult(effect) && !effect.failed ? 'recorded' : 'run'])),
  onlyRecorded: false,
});

/** The body of the request that goes to a checkpoint with these choices. */
export function travelOf(checkpointId: string, effects: readonly PastEffect[], { again, onlyRecorded }: Choices): Travel {
  if (onlyRecorded) return { checkpointId, onlyRecorded: true };
  const reuse = effects.filter((effect) => hasResult(effect) && again[effect.toolCallId] === 'recorded').map((effect) => effect.toolCallId);
  return reuse.length === 0 ? { checkpointId } : { checkpointId, reuse };
}
