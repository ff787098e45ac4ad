// The keys that do something here, by group.
import { useMemo } from 'react';
import { Dialog } from '../ui/Dialog.tsx';
import { Kbd } from '../ui/Kbd.tsx';
import { Switch } from '../ui/Switch.tsx';
import type { Command } from './commands.ts';
import { usePreferences, useStudio } from './context.tsx';
import './Help.css';
import { useStore } from './store.ts';

function byGroup(commands: readonly Command[]): [string, Command[]][] {
  const groups = new Map<string, Command[]>();
  for (const c of commands) if (c.keys) groups.set(c.group, [...(groups.get(c.group) ?? []), c]);
  return [...groups];
}

export function Help() {
  const { layer, commands } = useStudio();
  const [preferences, prefer] = usePreferences();
  const open = useStore(layer) === 'help';
  const all = useStore(commands.list);
  const groups = useMemo(() => byGroup(all), [all]);
  return (
    <Dialog open={open} onClose={() => layer.set('none')} title="Keyboard" size="wide" about="Every command is also in the palette, with or without a key.">
      <div className="help-groups">
        {groups.map(([group, list]) => (
          <section key={group} className="help-group" aria-label={group}>
            <h3 className="help-title">{group}</h3>
            <dl>
              {list.map((c) => (
                <div key={c.id} className="help-line">
                  <dt>{c.title}</dt>
                  <dd><Kbd keys={c.keys ?? ''} /></dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <Switch checked={preferences.keys} onChange={(keys) => prefer({ keys })} about="Off, only keys with Ctrl or ⌘ and Escape work: for voice control, or if letters are pressed by accident.">Single letters are shortcuts</Switch>
    </Dialog>
  );
}
