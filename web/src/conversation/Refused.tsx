// The server's refusal of a message, and the ways out of it.
import type { Choices } from '../api/actions.ts';
import { Button } from '../ui/Button.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';

export interface RefusedProps {
  error: unknown;
  /** Sends the same again, with a choice. */
  onSend: (choices: Choices) => void;
  /** Goes on with what is unfinished. */
  onResume: () => void;
  onDismiss: () => void;
}

/** The possible answers to each refusal. */
const ways: Record<string, readonly [string, Choices | 'resume']> = {
  run_in_progress: ['Stop it and send this', { onBusy: 'cancel_and_run' }],
  interrupted: ['Decline the question and send this', { onInterrupted: 'decline' }],
  mid_execution: ['Give up what is unfinished and send this', { onUnfinished: 'abandon' }],
  call_pending: ['Give up the open calls and send this', { onUnfinished: 'abandon' }],
  history_diverged: ['Send it as another version', { branch: true }],
  checkpoint_stale: ['Send it anyway', { allowStale: true }],
};

export function Refused({ error, onSend, onResume, onDismiss }: RefusedProps) {
  const failure = failureOf(error);
  const way = ways[failure.code ?? ''];
  return (
    <ErrorCard
      title="This was not sent" error={way ? { ...failure, hint: undefined } : failure} alert
      actions={(
        <>
          {way && typeof way[1] === 'object' && <Button size="small" kind="primary" onClick={() => onSend(way[1] as Choices)}>{way[0]}</Button>}
          {failure.code === 'mid_execution' && <Button size="small" onClick={onResume}>Continue the run instead</Button>}
          <Button size="small" kind="quiet" onClick={onDismiss}>Dismiss</Button>
        </>
      )}
    />
  );
}
