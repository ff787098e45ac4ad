// The command palette: everything one can do here, by name.
import { Dialog as Base } from '@base-ui/react/dialog';
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { SearchIcon } from '../ui/icons.tsx';
import { Kbd } from '../ui/Kbd.tsx';
import type { Command } from './commands.ts';
import { useStudio } from './context.tsx';
import './Palette.css';
import { rank } from './rank.ts';
import { useStore } from './store.ts';

function Commands({ onDone }: { onDone: (run?: () => void) => void }) {
  const { commands } = useStudio();
  const all = useStore(commands.list);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  // Not deferred: Enter does what stands first for what is typed, however busy the page is.
  const found = useMemo(() => rank(all.filter((c) => !c.hidden && (c.when?.() ?? true)), text), [all, text]);
  const current = Math.min(at, Math.max(0, found.length - 1));
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [current, found]);
  const start = (command: Command | undefined) => command && onDone(command.run);
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing) return;
    const to = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: found.length - 1 }[e.key];
    if (to !== undefined && found.length > 0) setAt((to + found.length) % found.length);
    else if (e.key === 'Enter') start(found[current]);
    else return;
    e.preventDefault();
  };
  return (
    <>
      <div className="palette-search">
        <SearchIcon />
        <input
          className="palette-input" type="text" role="combobox" aria-label="Command" aria-expanded="true" aria-controls={`${id}-list`} aria-autocomplete="list"
          aria-activedescendant={found.length > 0 ? `${id}-${current}` : undefined} placeholder="Type what you want to do" autoComplete="off" spellCheck={false}
          value={text} onChange={(e) => { setText(e.target.value); setAt(0); }} onKeyDown={onKeyDown}
        />
      </div>
      <div className="palette-list" role="listbox" id={`${id}-list`} aria-label="Commands" ref={list}>
        {found.map((c, i) => (
          <div key={c.id} id={`${id}-${i}`} role="option" aria-selected={i === current} className="menu-item" data-highlighted={i === current || undefined} onPointerMove={() => i !== current && setAt(i)} onClick={() => start(c)}>
            <span className="truncate">{c.title}</span>
            <span className="palette-group">{c.group}</span>
            {c.keys && <Kbd keys={c.keys} />}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="palette-none" role="status">Nothing here is called that.</p>}
    </>
  );
}

export function Palette() {
  const { layer } = useStudio();
  const open = useStore(layer) === 'palette';
  const next = useRef<(() => void) | undefined>(undefined);
  const close = () => layer.set((now) => (now === 'palette' ? 'none' : now));
  return (
    <Base.Root open={open} onOpenChange={(shown) => !shown && close()} onOpenChangeComplete={(shown) => {
      // Only now, because the palette gives the focus back when it has gone.
      if (shown) return;
      const run = next.current;
      next.current = undefined;
      run?.();
    }}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className="dialog palette" aria-label="Commands">
          <Commands onDone={(run) => { next.current = run; close(); }} />
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
