// Edits the shared state of a checkpoint: what will be different is shown before it is saved.
import { useState } from 'react';
import { Button } from '../ui/Button.tsx';
import { JsonDiff } from '../ui/Diff.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { TextArea, TextField } from '../ui/Field.tsx';
import { BranchIcon, CheckIcon, TerminalIcon } from '../ui/icons.tsx';
import './EditState.css';

/** The written text, as JSON; or what is wrong with it. */
export function parsed(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (err) {
    return { problem: `This is not JSON yet: ${err instanceof Error ? err.message : String(err)}` };
  }
}

export interface EditStateDialogProps {
  open: boolean;
  onClose: () => void;
  state: unknown;
  /** Where the state is from: "now", or "step 3 of 7". */
  where: string;
  /** A past state can only be that of another thread: this one is not rewritten. */
  forks: boolean;
  busy?: boolean;
  error?: unknown;
  onSave: (state: unknown, label: string) => void;
  onCopyCurl: (state: unknown, label: string) => void;
}

export function EditStateDialog({ open, onClose, state, where, forks, busy = false, error, onSave, onCopyCurl }: EditStateDialogProps) {
  const [text, setText] = useState(() => JSON.stringify(state ?? {}, null, 2));
  const [label, setLabel] = useState('');
  const result = parsed(text);
  const value = 'value' in result ? result.value : undefined;
  const different = 'value' in result && JSON.stringify(value) !== JSON.stringify(state);
  const actions = (
    <>
      <Button kind="quiet" icon={<TerminalIcon />} disabled={!different} onClick={() => onCopyCurl(value, label)}>Copy as curl</Button>
      <span className="grow" />
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" icon={forks ? <BranchIcon /> : <CheckIcon />} busy={busy} disabled={!different} onClick={() => onSave(value, label)}>{forks ? 'Fork with this state' : 'Save as a checkpoint'}</Button>
    </>
  );
  return (
    <Dialog
      open={open} onClose={onClose} size="wide" actions={actions} title={`Edit the state of ${where}`}
      about={forks ? 'The past is not rewritten: a new thread begins there, with the state as you write it.' : 'The state is replaced for what runs next, and a checkpoint is taken, so the one before stays.'}
    >
      <div className="stack">
        {error !== undefined && error !== null && <ErrorCard title="The state was not saved" error={failureOf(error)} alert />}
        <TextArea label="Shared state, as JSON" className="durable-state-text" value={text} onChange={setText} rows={10} spellCheck={false} error={'problem' in result ? result.problem : undefined} />
        <section aria-label="The changes">
          <h3 className="durable-state-title">The changes</h3>
          {'value' in result ? <JsonDiff before={state} after={value} label="The changes" /> : <p className="soft">It is shown as soon as this is JSON.</p>}
        </section>
        <TextField label="Label" about="The name of the checkpoint. You can leave it empty." value={label} maxLength={200} onChange={setLabel} />
      </div>
    </Dialog>
  );
}

export interface MarkDialogProps {
  open: boolean;
  onClose: () => void;
  busy?: boolean;
  error?: unknown;
  onSave: (label: string) => void;
  onCopyCurl: (label: string) => void;
}

/** Marks where the thread stands with a checkpoint that has a name. */
export function MarkDialog({ open, onClose, busy = false, error, onSave, onCopyCurl }: MarkDialogProps) {
  const [label, setLabel] = useState('');
  const actions = (
    <>
      <Button kind="quiet" icon={<TerminalIcon />} disabled={!label.trim()} onClick={() => onCopyCurl(label.trim())}>Copy as curl</Button>
      <span className="grow" />
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" busy={busy} disabled={!label.trim()} onClick={() => onSave(label.trim())}>Mark</Button>
    </>
  );
  return (
    <Dialog open={open} onClose={onClose} title="Mark this place" about="A checkpoint is taken where the thread stands, and has this name in the strip." actions={actions}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); if (label.trim()) onSave(label.trim()); }}>
        {error !== undefined && error !== null && <ErrorCard title="The place was not marked" error={failureOf(error)} alert />}
        <TextField label="Label" value={label} maxLength={200} placeholder="before the rewrite" onChange={setLabel} />
      </form>
    </Dialog>
  );
}
