// Shows toasts. A toast waits while the pointer or the focus is on it.
import { useEffect, useState } from 'react';
import { Button, IconButton } from '../ui/Button.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { useStudio } from './context.tsx';
import { useStore } from './store.ts';
import './Toaster.css';
import type { ShownToast } from './toasts.ts';

function OneToast({ toast, held }: { toast: ShownToast; held: boolean }) {
  const { toasts } = useStudio();
  const lasts = toast.lasts ?? (toast.action ? 8000 : 4000);
  useEffect(() => {
    if (held) return undefined;
    const timer = setTimeout(() => toasts.close(toast.id), lasts);
    return () => clearTimeout(timer);
  }, [toasts, toast.id, lasts, held]);
  return (
    <li className="toast" data-tone={toast.tone ?? 'neutral'}>
      <span className="grow">{toast.text}</span>
      {toast.action && <Button size="small" kind="quiet" className="toast-action" onClick={() => toasts.act(toast.id)}>{toast.action.label}</Button>}
      <IconButton size="small" label="Dismiss" onClick={() => toasts.close(toast.id)}><CloseIcon /></IconButton>
    </li>
  );
}

export function Toaster() {
  const { toasts } = useStudio();
  const list = useStore(toasts.list);
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (list.length === 0) setHeld(false);
  }, [list.length]);
  // A person who leaves the page has taken nothing back.
  useEffect(() => {
    const leave = () => toasts.list.get().forEach((t) => toasts.close(t.id));
    window.addEventListener('pagehide', leave);
    return () => window.removeEventListener('pagehide', leave);
  }, [toasts]);
  return (
    <section className="toaster" aria-label="Notifications" aria-live="polite" onPointerEnter={() => setHeld(true)} onPointerLeave={() => setHeld(false)} onFocus={() => setHeld(true)} onBlur={() => setHeld(false)}>
      <ul>{list.map((toast) => <OneToast key={toast.id} toast={toast} held={held} />)}</ul>
    </section>
  );
}
