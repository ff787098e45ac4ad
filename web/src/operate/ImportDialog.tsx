// Makes a thread of an exported one: shows what is in the file, and then what became of it.
import { useQueryClient } from '@tanstack/react-query';
import { useId, useRef, useState, type DragEvent } from 'react';
import * as actions from '../api/actions.ts';
import { threadsKey } from '../api/queries.ts';
import type { ThreadInfo } from '../api/types.ts';
import { useAnnounce, useStudio } from '../app/context.tsx';
import { useCopyCurl, useServer } from '../app/data.tsx';
import { nameOf } from '../threads/standing.ts';
import { readThreadFile, type ThreadFile } from '../threads/transfer.ts';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { TextField } from '../ui/Field.tsx';
import { CheckIcon, TerminalIcon, UploadIcon } from '../ui/icons.tsx';
import { bytes, plural } from '../ui/time.ts';
import './Import.css';

function Drop({ onFile }: { onFile: (file: File) => void }) {
  const id = useId();
  const [over, setOver] = useState(false);
  const drop = (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    const file = e.dataTransfer.files[0];
    if (file) onFile(file);
  };
  return (
    <div className="import-drop" data-over={over || undefined} onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
      <UploadIcon />
      <p><label htmlFor={id} className="import-choose">Choose a file</label> or drop it here</p>
      <input id={id} className="import-file" type="file" accept=".json,application/json" onChange={(e) => { const file = e.target.files?.[0]; if (file) onFile(file); e.target.value = ''; }} />
    </div>
  );
}

function Chosen({ file, id, onId }: { file: ThreadFile; id: string; onId: (id: string) => void }) {
  return (
    <div className="stack">
      <dl className="import-facts">
        <div><dt>File</dt><dd>{file.name}, {bytes(file.size)}</dd></div>
        <div><dt>Thread</dt><dd><code>{file.thread}</code></dd></div>
        <div><dt>In it</dt><dd>{plural(file.messages, 'message')}, {plural(file.records, 'record')}</dd></div>
      </dl>
      <TextField label="Id of the new thread" value={id} onChange={onId} className="mono" placeholder={file.thread} autoComplete="off" spellCheck={false} about="Without one it keeps its id, or gets a new one if that is taken." />
      <p className="small soft">It becomes yours and rests: questions and calls that were open are given up. Everything but the user’s messages is marked as imported, because a file could have been changed.</p>
    </div>
  );
}

function Done({ thread, file }: { thread: ThreadInfo; file: ThreadFile }) {
  const renamed = thread.id !== file.thread;
  return (
    <p className="import-done" role="status">
      <CheckIcon />
      <span><b>{nameOf(thread)}</b> is yours now{renamed ? <>, as <code>{thread.id}</code>: another thread is called <code>{file.thread}</code></> : ''}. Its messages, branches, checkpoints and logs are all there.</span>
    </p>
  );
}

function useImport() {
  const server = useServer();
  const client = useQueryClient();
  const announce = useAnnounce();
  const [file, setFile] = useState<ThreadFile | null>(null);
  const [error, setError] = useState<unknown>();
  const [thread, setThread] = useState<ThreadInfo | null>(null);
  const [busy, setBusy] = useState(false);
  const choose = (chosen: File) => {
    setError(undefined);
    chosen.text().then((content) => setFile(readThreadFile(chosen.name, content))).catch(setError);
  };
  const send = async (id: string) => {
    if (!file) return;
    setBusy(true);
    setError(undefined);
    try {
      const made = await server.json<ThreadInfo>(actions.importThread(file.content, id || undefined));
      setThread(made);
      announce(`${nameOf(made)} was imported.`);
      await client.invalidateQueries({ queryKey: threadsKey });
    } catch (err) {
      setError(err);
    } finally {
      setBusy(false);
    }
  };
  return { file, error, thread, busy, choose, send, back: () => { setFile(null); setError(undefined); } };
}

export default function ImportDialog() {
  const { router, layer } = useStudio();
  const copy = useCopyCurl();
  const importing = useImport();
  const { file, error, thread, busy } = importing;
  const [id, setId] = useState('');
  const start = useRef<HTMLButtonElement>(null);
  const close = () => layer.set((now) => (now === 'import' ? 'none' : now));
  const open = () => {
    close();
    if (thread) router.go({ page: 'thread', thread: thread.id });
  };
  return (
    <Dialog
      open onClose={close} title="Import a thread" about={!file && 'From this server or another one: a file that “Export” or holdfast export has written.'}
      actions={thread ? <Button ref={start} kind="primary" onClick={open}>Open it</Button> : file ? (
        <>
          <Button icon={<TerminalIcon />} onClick={() => copy(actions.importThread(`@${file.name}`, id.trim() || undefined))}>Copy as curl</Button>
          <Button onClick={importing.back}>Another file</Button>
          <Button kind="primary" busy={busy} onClick={() => void importing.send(id.trim())}>Import</Button>
        </>
      ) : undefined}
    >
      <div className="stack">
        {thread && file ? <Done thread={thread} file={file} /> : file ? <Chosen file={file} id={id} onId={setId} /> : <Drop onFile={importing.choose} />}
        {error !== undefined && <ErrorCard title={file ? 'It was not imported' : 'This file cannot be imported'} error={failureOf(error)} alert />}
      </div>
    </Dialog>
  );
}
