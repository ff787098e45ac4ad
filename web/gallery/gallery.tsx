// All primitives in all their states, to look at: "make dev", then /gallery/index.html. It
// is not part of what is built.
import '../src/ui/tokens.css';
import '../src/ui/base.css';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { useState, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import './gallery.css';
import { createStudio, StudioProvider, useStudio } from '../src/app/context.tsx';
import { Footer } from '../src/app/Footer.tsx';
import { Toaster } from '../src/app/Toaster.tsx';
import { Badge } from '../src/ui/Badge.tsx';
import { Button, IconButton } from '../src/ui/Button.tsx';
import { CopyButton } from '../src/ui/CopyButton.tsx';
import { AlertDialog, Dialog } from '../src/ui/Dialog.tsx';
import { JsonDiff, TextDiff } from '../src/ui/Diff.tsx';
import { EmptyState } from '../src/ui/EmptyState.tsx';
import { ErrorCard } from '../src/ui/ErrorCard.tsx';
import { Checkbox, Select, TextArea, TextField } from '../src/ui/Field.tsx';
import * as icons from '../src/ui/icons.tsx';
import { JsonTree } from '../src/ui/JsonTree.tsx';
import { Kbd } from '../src/ui/Kbd.tsx';
import { Markdown } from '../src/ui/Markdown.tsx';
import { Menu, MenuChoice, MenuItem, MenuSeparator } from '../src/ui/Menu.tsx';
import { Popover } from '../src/ui/Popover.tsx';
import { Skeleton, Spinner } from '../src/ui/Spinner.tsx';
import { StatusDot, type Tone } from '../src/ui/StatusDot.tsx';
import { Switch } from '../src/ui/Switch.tsx';
import { Tabs } from '../src/ui/Tabs.tsx';
import { Duration, Time } from '../src/ui/Time.tsx';
import { VirtualList } from '../src/ui/VirtualList.tsx';

const tones: Tone[] = ['neutral', 'active', 'good', 'wait', 'bad', 'info', 'think'];
const before = { plan: ['look', 'book'], city: 'Lyon', trip: { nights: 2, hotel: null }, people: [{ id: 'a', name: 'Ada' }, { id: 'b', name: 'Bob' }] };
const after = { plan: ['look', 'compare', 'book'], city: 'Lyon', trip: { nights: 3, hotel: 'Le Phare' }, people: [{ id: 'b', name: 'Bobby' }, { id: 'a', name: 'Ada' }] };
const words = '# A plan\n\nThe **first** step *looks*, the second `books`. See [the docs](https://example.org).\n\n| step | cost |\n|---|--:|\n| look | 0 |\n| book | 120 |\n\n```go\nfunc main() {\n\tfmt.Println("held")\n}\n```\n\n1. one\n2. two\n   - inner\n\n- [x] done\n- [ ] open\n\n> Nothing is lost.\n';

function Part({ title, children }: { title: string; children: ReactNode }) {
  return <section className="gallery-part"><h2>{title}</h2><div className="gallery-body">{children}</div></section>;
}

function Layers() {
  const [open, setOpen] = useState<'no' | 'dialog' | 'alert'>('no');
  const { toasts } = useStudio();
  return (
    <Part title="Layers">
      <Menu trigger={<Button>Menu</Button>}>
        <MenuItem icon={<icons.EditIcon />} keys="r" onSelect={() => {}}>Rename</MenuItem>
        <MenuItem icon={<icons.BranchIcon />} onSelect={() => {}}>Fork from here</MenuItem>
        <MenuSeparator />
        <MenuChoice label="Order" value="new" options={[['new', 'Newest first'], ['old', 'Oldest first']]} onChange={() => {}} />
        <MenuSeparator />
        <MenuItem icon={<icons.TrashIcon />} danger onSelect={() => {}}>Delete</MenuItem>
      </Menu>
      <Popover trigger={<Button>Popover</Button>} title="Usage"><p className="soft">1,204 tokens, 38% from the cache</p></Popover>
      <Button onClick={() => setOpen('dialog')}>Dialog</Button>
      <Button kind="danger" onClick={() => setOpen('alert')}>Alert</Button>
      <Button onClick={() => toasts.show({ text: 'The thread was deleted', action: { label: 'Undo', run: () => {} } })}>Toast</Button>
      <Dialog open={open === 'dialog'} onClose={() => setOpen('no')} title="Fork from step 3" about="The new thread begins with what was said until then." actions={<><Button onClick={() => setOpen('no')}>Cancel</Button><Button kind="primary">Fork</Button></>}>
        <TextField label="Title" value="Trip to Lyon, by train" onChange={() => {}} />
      </Dialog>
      <AlertDialog open={open === 'alert'} onClose={() => setOpen('no')} title="Delete this thread?" about="Its runs and checkpoints go with it." confirm="Delete" danger onConfirm={() => setOpen('no')} />
    </Part>
  );
}

function Fields() {
  const [on, setOn] = useState(true);
  const [tab, setTab] = useState<'a' | 'b' | 'c'>('a');
  return (
    <>
      <Part title="Fields">
        <div className="gallery-form">
          <TextField label="Name" value="" placeholder="What it is called" onChange={() => {}} about="Others see it too." />
          <TextField label="Nights" value="-1" required error="It must be at least 1." onChange={() => {}} />
          <Select label="Agent" value="demo" options={[['demo', 'demo'], ['travel', 'travel']]} onChange={() => {}} />
          <TextArea label="Message" value={'Two lines\nof it'} onChange={() => {}} />
          <Checkbox checked={on} onChange={setOn} about="Nothing is called again.">Use recorded results</Checkbox>
          <Switch checked={on} onChange={setOn} about="As the records come.">Follow</Switch>
          <TextField label="Off" value="cannot be changed" disabled onChange={() => {}} />
        </div>
      </Part>
      <Part title="Tabs">
        <div className="gallery-box"><Tabs label="Inspector" value={tab} onChange={setTab} tabs={[{ value: 'a', name: 'Events', count: 1204, panel: <p className="gallery-pad">Records</p> }, { value: 'b', name: 'State', panel: 'State' }, { value: 'c', name: 'Run', panel: 'Run' }]} actions={<IconButton label="Search"><icons.SearchIcon /></IconButton>} /></div>
      </Part>
    </>
  );
}

function Gallery() {
  return (
    <main className="gallery">
      <h1>Primitives</h1>
      <Part title="Buttons">
        <Button kind="primary">Send</Button><Button>Cancel</Button><Button kind="danger">Delete</Button><Button kind="quiet">Details</Button>
        <Button icon={<icons.BranchIcon />}>Fork</Button><Button busy>Forking</Button><Button disabled>Off</Button><Button kind="primary" disabled>Off</Button>
        <Button size="small" icon={<icons.RetryIcon />}>Try again</Button><IconButton label="Copy"><icons.CopyIcon /></IconButton><IconButton label="Pressed" aria-pressed><icons.EyeIcon /></IconButton><CopyButton text="x" /><Kbd keys="Mod+K" /><Kbd keys="?" />
      </Part>
      <Part title="Standing">
        {tones.map((tone) => <Badge key={tone} tone={tone}><StatusDot tone={tone} />{tone}</Badge>)}
        <Spinner /><Time at={Date.now() - 400_000} /><Duration ms={1234} /><Duration since={Date.now() - 61_000} />
      </Part>
      <Part title="Icons">{Object.entries(icons).map(([name, Icon]) => <span key={name} className="gallery-icon" title={name}><Icon /></span>)}</Part>
      <Layers />
      <Fields />
      <Part title="Markdown"><div className="gallery-wide"><Markdown text={words} headings={3} /></div></Part>
      <Part title="JSON"><div className="gallery-box tall"><JsonTree label="State" depth={2} value={{ ...after, long: 'word '.repeat(200), many: Array.from({ length: 300 }, (_, i) => i), ok: true, none: null, text: 'line\nline' }} marked={(p) => p === '/trip/hotel'} /></div></Part>
      <Part title="Differences"><div className="gallery-wide"><JsonDiff label="State" before={before} after={after} /></div><div className="gallery-wide"><TextDiff label="Text" before={'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine'} after={'one\ntwo\nthree\nfour\nfive\nsix\nseven\nEIGHT\nnine\nten'} /></div></Part>
      <Part title="List"><div className="gallery-box"><VirtualList label="Records" count={10_000} keyOf={(i) => i} active={3} onActive={() => {}}>{(i) => <div className="gallery-line mono">{i} TEXT_MESSAGE_CONTENT</div>}</VirtualList></div></Part>
      <Part title="States">
        <div className="gallery-wide"><ErrorCard title="The run failed" error={{ code: 'model_unavailable', message: 'The model did not answer.', hint: 'Look whether its key is set: OPENAI_API_KEY.' }} onRetry={() => {}} /></div>
        <div className="gallery-box"><EmptyState icon={<icons.QuestionIcon />} title="Nothing waits for you" actions={<Button kind="primary">New thread</Button>}>When an agent asks before it goes on, its question is here.</EmptyState></div>
        <div className="gallery-box gallery-pad"><Skeleton lines={5} /></div>
      </Part>
      <Footer standing={{ connection: 'reconnecting', position: '3-1204', run: { text: 'Running', tone: 'active' }, usage: '1,204 tokens', server: 'v0.3.0' }} />
    </main>
  );
}

const root = document.getElementById('root');
if (root) createRoot(root).render(<CSPProvider disableStyleElements><StudioProvider studio={createStudio(window)}><Gallery /><Toaster /></StudioProvider></CSPProvider>);
