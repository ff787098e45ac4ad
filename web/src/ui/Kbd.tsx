import './Kbd.css';

export const isMac = (): boolean => /Mac|iPhone|iPad/.test(navigator.platform);

const signs: Record<string, string> = { Enter: '↵', Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', ' ': 'Space' };

/** The parts of "Mod+K" as a person here knows them. */
export function keyNames(keys: string, mac = isMac()): string[] {
  return keys.split(/\+(?=.)/).map((part) => {
    if (part === 'Mod') return mac ? '⌘' : 'Ctrl';
    if (part === 'Shift') return mac ? '⇧' : 'Shift';
    return signs[part] ?? part;
  });
}

/** A key, or some at once. */
export function Kbd({ keys }: { keys: string }) {
  return <kbd className="kbd">{keyNames(keys).map((name) => <span key={name}>{name}</span>)}</kbd>;
}
