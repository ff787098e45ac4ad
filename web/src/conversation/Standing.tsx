// The ways to continue a run that did not come to its end, and whom a thread waits for.
import type { ThreadInfo } from '../api/types.ts';
import type { View } from '../log/view.ts';
import { Button } from '../ui/Button.tsx';
import { ClockIcon, PlayIcon, RetryIcon } from '../ui/icons.tsx';
import { until } from './format.ts';

export interface StandingProps {
  view: View;
  thread: ThreadInfo | undefined;
  busy: boolean;
  onResume: () => void;
}

export function Standing({ view, thread, busy, onResume }: StandingProps) {
  if (thread?.waiting && view.status === 'running') {
    return <p className="conversation-standing"><ClockIcon /><span className="grow">Waits for a server with {thread.waiting.revision ? <>revision <code>{thread.waiting.revision}</code> of its agent</> : 'its agent'}, until {until(thread.waiting.until)}.</span></p>;
  }
  if (busy) return null;
  // A thread that was taken back into the middle of a run has not failed.
  if (view.status === 'failed' || (thread?.status === 'stopped' && view.runId === thread.runId) || thread?.status === 'stopped') {
    const failed = view.status === 'failed';
    return (
      <div className="conversation-standing" data-tone={failed ? 'bad' : 'wait'}>
        {failed ? <RetryIcon /> : <PlayIcon />}
        <span className="grow">{failed ? 'The run has failed. Finished work is kept.' : 'The thread stands in the middle of a run.'} Continue it, or write something else.</span>
        <Button size="small" kind="primary" onClick={onResume}>Continue</Button>
      </div>
    );
  }
  if (view.outside.length > 0) {
    return (
      <div className="conversation-standing" data-tone="wait">
        <ClockIcon />
        <ul className="grow">
          {view.outside.map((call) => (
            <li key={call.toolCallId}>
              <code>{call.toolName}</code> waits for its result from outside{call.expiresAt && <>, until {until(call.expiresAt)}</>}.
              {call.abandonable === true && ' A new message gives it up.'}
            </li>
          ))}
        </ul>
      </div>
    );
  }
  if (view.pending.length > 0) return <p className="conversation-standing" data-tone="wait"><ClockIcon /><span className="grow">Waits for the results of {view.pending.length === 1 ? 'a call' : `${view.pending.length} calls`} that the frontend of another page runs. A new message closes {view.pending.length === 1 ? 'it' : 'them'}.</span></p>;
  return null;
}
