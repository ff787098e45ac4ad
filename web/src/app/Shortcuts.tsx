import { useEffect } from 'react';
import { isMac } from '../ui/Kbd.tsx';
import { commandFor } from './commands.ts';
import { useStudio } from './context.tsx';

/** Starts commands by their keys. A component that has handled a key itself has prevented its default. */
export function Shortcuts() {
  const { commands, preferences, layer } = useStudio();
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.isComposing || e.repeat) return;
      // Over the page only keys with modifiers work: letters belong to what is open.
      const open = layer.get() !== 'none' || document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null;
      if (open && !(e.ctrlKey || e.metaKey)) return;
      const command = commandFor(commands.list.get(), e, { letters: preferences.get().keys, mac: isMac() });
      if (!command) return;
      e.preventDefault();
      command.run();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [commands, preferences, layer]);
  return null;
}
