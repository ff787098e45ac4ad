// Whether the side regions are open: remembered on a wide screen, one at a time over the
// middle on a narrow one.
import { createContext, useCallback, useContext, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { usePlace, usePreferences } from './context.tsx';

export type Side = 'threads' | 'inspector';

export interface Sides {
  narrow: boolean;
  /** The drawer that is open on a narrow screen. */
  open: Side | null;
  isOpen: (side: Side) => boolean;
  toggle: (side: Side) => void;
  show: (side: Side) => void;
  /** Closes the drawer. */
  close: () => void;
}

const query = '(max-width: 899px)';

function useNarrow(): boolean {
  const media = useMemo(() => window.matchMedia(query), []);
  return useSyncExternalStore(
    useCallback((changed) => {
      media.addEventListener('change', changed);
      return () => media.removeEventListener('change', changed);
    }, [media]),
    () => media.matches,
  );
}

const Context = createContext<Sides | null>(null);

export function SidesProvider({ children }: { children: ReactNode }) {
  const narrow = useNarrow();
  const [preferences, prefer] = usePreferences();
  const [open, setOpen] = useState<Side | null>(null);
  const place = usePlace();
  // A person who goes to another thread wants to see it.
  useEffect(() => setOpen((now) => (now === 'threads' ? null : now)), [place.page, place.thread, place.section]);
  // An address with a tab of the inspector shows the inspector.
  useEffect(() => {
    if (!place.tab) return;
    if (narrow) setOpen('inspector');
    else prefer({ inspector: true });
  }, [place.tab, place.thread, narrow, prefer]);
  const isOpen = (side: Side) => (narrow ? open === side : preferences[side]);
  const put = (side: Side, shown: boolean) => {
    if (narrow) setOpen(shown ? side : null);
    else prefer({ [side]: shown });
  };
  const sides: Sides = {
    narrow, open, isOpen,
    toggle: (side) => put(side, !isOpen(side)),
    show: (side) => put(side, true),
    close: () => setOpen(null),
  };
  return <Context value={sides}>{children}</Context>;
}

export function useSides(): Sides {
  const sides = useContext(Context);
  if (!sides) throw new Error('a component of Studio is used outside of its regions');
  return sides;
}
