// Asks for the key of a server that requires one. Without any there is nothing to see, and the
// next request would ask again: that dialog stays.
import { useRef, useState, type FormEvent } from 'react';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { TextField } from '../ui/Field.tsx';
import type { Keys } from './keys.ts';
import { useStore } from './store.ts';

export function KeyDialog({ keys }: { keys: Keys }) {
  const asked = useStore(keys.asked);
  const [text, setText] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const use = (e: FormEvent) => {
    e.preventDefault();
    if (!text.trim()) return;
    keys.use(text.trim());
    setText('');
  };
  return (
    <Dialog
      open={asked !== 'no'} onClose={asked === 'another' ? keys.giveUp : undefined} title={asked === 'another' ? 'Use another key' : 'This server requires a key'} focus={input}
      about={asked === 'refused' ? 'That key was refused. Look whether it is whole, and whether it is still valid.' : asked === 'another' ? 'It takes the place of the one that this tab uses now.' : 'The people who run the server give you one.'}
    >
      <form className="stack" onSubmit={use}>
        <TextField ref={input} label="API key" type="password" autoComplete="off" required value={text} onChange={setText} about="It stays in this tab, and is sent to this server only." />
        <div className="row"><Button type="submit" kind="primary">Use this key</Button></div>
      </form>
    </Dialog>
  );
}
