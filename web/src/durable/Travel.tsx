// Asks before a thread goes back to a checkpoint, or a new one begins there: what has already
// happened outside, and what is to be done about each.
import { useId, useRef, useState, type ReactNode } from 'react';
import type { PastEffect } from '../api/types.ts';
import { Badge } from '../ui/Badge.tsx';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { EffectBadge, effectOf } from '../ui/effect.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { BranchIcon, CheckIcon, RewindIcon, TerminalIcon, WarningIcon } from '../ui/icons.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { Switch } from '../ui/Switch.tsx';
import { argumentsText } from './arguments.ts';
import './Travel.css';
import { hasResult, proposed, type Again, type Choices } from './travel.ts';

function Choice({ name, value, recordable, disabled, onChange }: { name: string; value: Again; recordable: boolean; disabled: boolean; onChange: (value: Again) => void }) {
  const id = useId();
  const option = (of: Again, text: string, off = false): ReactNode => (
    <label><input type="radio" name={id} checked={value === of} disabled={disabled || off} onChange={() => onChange(of)} />{text}</label>
  );
  return (
    <fieldset className="durable-choice">
      <legend className="sr">If the model calls {name} like this again</legend>
      {option('recorded', 'Use its result again', !recordable)}
      {option('run', 'Let it run again')}
    </fieldset>
  );
}

function EffectRow({ effect, value, fixed, onChange }: { effect: PastEffect; value: Again; fixed: boolean; onChange: (value: Again) => void }) {
  const recordable = hasResult(effect);
  const { again } = effectOf(effect.effect);
  return (
    <li className="durable-effect">
      <div className="durable-effect-head">
        <span className="durable-effect-name">{effect.toolName}</span>
        <EffectBadge effect={effect.effect} />
        {effect.failed && <Badge tone="bad">failed</Badge>}
        {effect.messageId === undefined && <Badge tone="wait" title="It was started and has no result: nobody knows what became of it.">no result</Badge>}
      </div>
      <pre className="durable-args" tabIndex={0} role="group" aria-label={`Arguments of ${effect.toolName}`}>{argumentsText(effect.arguments)}</pre>
      {again && <p className="small soft">{again}</p>}
      <Choice name={effect.toolName} value={fixed ? (recordable ? 'recorded' : 'run') : value} recordable={recordable} disabled={fixed} onChange={onChange} />
    </li>
  );
}

export interface TravelDialogProps {
  kind: 'rewind' | 'fork';
  open: boolean;
  onClose: () => void;
  /** Where to: "step 3 of 7". */
  where: string;
  /** The events since then; undefined while the server is asked. */
  effects: readonly PastEffect[] | undefined;
  /** More may have happened than the list says. */
  incomplete?: boolean;
  /** Why the server would not do it. */
  error?: unknown;
  busy?: boolean;
  /** The thread would stand in the middle of a run, which can be continued. */
  unfinished: boolean;
  onConfirm: (choices: Choices, goOn: boolean) => void;
  onCopyCurl: (choices: Choices) => void;
}

const texts = {
  rewind: {
    title: (where: string) => `Rewind to ${where}?`,
    about: 'Everything after it stays stored, out of sight: you can go forward to it again. The shared state is that of the checkpoint.',
    confirm: 'Rewind', icon: <RewindIcon />,
  },
  fork: {
    title: (where: string) => `Fork from ${where}?`,
    about: 'A new thread begins there, with its history and its shared state. This one is not changed.',
    confirm: 'Fork', icon: <BranchIcon />,
  },
} as const;

function Effects({ effects, incomplete, choices, onChange }: { effects: readonly PastEffect[]; incomplete: boolean; choices: Choices; onChange: (choices: Choices) => void }) {
  const all = (again: Again) => onChange({ ...choices, again: Object.fromEntries(effects.map((e) => [e.toolCallId, again === 'recorded' && !hasResult(e) ? 'run' : again])) });
  if (effects.length === 0 && !incomplete) return <p className="durable-note"><CheckIcon /> Nothing outside has been changed since then. There is nothing to decide.</p>;
  return (
    <div>
      <div className="durable-sub">
        <h3>{effects.length === 1 ? 'One call has' : `${effects.length} calls have`} already changed something outside</h3>
        {effects.length > 2 && !choices.onlyRecorded && (
          <span className="row">
            <Button size="small" kind="quiet" onClick={() => all('recorded')}>Use all results</Button>
            <Button size="small" kind="quiet" onClick={() => all('run')}>Run all again</Button>
          </span>
        )}
      </div>
      <p className="soft durable-undone">This is not undone. If the model makes the same call with the same arguments again:</p>
      {incomplete && <p className="durable-note" role="note"><WarningIcon /> The part after that point cannot be read, so more may have happened than is listed.</p>}
      <ul className="durable-effects">
        {effects.map((effect) => (
          <EffectRow key={effect.toolCallId} effect={effect} value={choices.again[effect.toolCallId] ?? 'run'} fixed={choices.onlyRecorded} onChange={(again) => onChange({ ...choices, again: { ...choices.again, [effect.toolCallId]: again } })} />
        ))}
      </ul>
    </div>
  );
}

export function TravelDialog({ kind, open, onClose, where, effects, incomplete = false, error, busy = false, unfinished, onConfirm, onCopyCurl }: TravelDialogProps) {
  const [changed, setChanged] = useState<Choices | undefined>(undefined);
  const [goOn, setGoOn] = useState(kind === 'rewind');
  const cancel = useRef<HTMLButtonElement>(null);
  const choices = changed ?? proposed(effects ?? []);
  const { title, about, confirm, icon } = texts[kind];
  const actions = (
    <>
      <Button kind="quiet" icon={<TerminalIcon />} onClick={() => onCopyCurl(choices)}>Copy as curl</Button>
      <span className="grow" />
      <Button ref={cancel} onClick={onClose}>Cancel</Button>
      <Button kind="primary" icon={icon} busy={busy} disabled={effects === undefined} onClick={() => onConfirm(choices, unfinished && goOn)}>{confirm}</Button>
    </>
  );
  return (
    <Dialog open={open} onClose={onClose} title={title(where)} about={about} size="wide" actions={actions} focus={cancel}>
      <div className="stack">
        {error !== undefined && error !== null && <ErrorCard title={kind === 'rewind' ? 'The thread did not go back' : 'The thread was not forked'} error={failureOf(error)} alert />}
        {effects === undefined ? (error ? null : <Skeleton lines={4} label="Asking what has happened since" />) : <Effects effects={effects} incomplete={incomplete} choices={choices} onChange={setChanged} />}
        {effects !== undefined && (
          <Switch checked={choices.onlyRecorded} onChange={(onlyRecorded) => setChanged({ ...choices, onlyRecorded })} about="A rehearsal: calls get their recorded results, and one without ends the run. Nothing happens outside.">
            Run nothing that was not recorded
          </Switch>
        )}
        {unfinished && (
          <Switch checked={goOn} onChange={setGoOn} about="The checkpoint is in the middle of a run. Otherwise the thread stands there, stopped, until you continue.">
            Continue the run from there
          </Switch>
        )}
      </div>
    </Dialog>
  );
}
