// The three regions: threads, what is in the middle, inspector. The sides can be closed and
// have any width; on a narrow screen they are drawers over the middle.
import { useEffect, useRef, type CSSProperties, type KeyboardEvent, type ReactNode, type RefObject } from 'react';
import { defaults } from './preferences.ts';
import { usePreferences } from './context.tsx';
import './Regions.css';
import { Separator } from './Separator.tsx';
import { useSides } from './sides.tsx';

const limits = { threads: [200, 440], inspector: [320, 900] } as const;

const focusable = 'a[href], button:not(:disabled), input:not(:disabled), select, textarea, [tabindex="0"]';

/** While a drawer is open the focus is in it, and goes back where it was. */
function useDrawerFocus(region: RefObject<HTMLElement | null>, drawer: boolean): void {
  useEffect(() => {
    if (!drawer) return undefined;
    const before = document.activeElement;
    // A part that is loaded later is not there yet.
    (region.current?.querySelector<HTMLElement>(focusable) ?? region.current)?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [region, drawer]);
}

export interface RegionsProps {
  threads: ReactNode;
  main: ReactNode;
  /** Without it there is no third region here. */
  inspector: ReactNode | null;
  footer: ReactNode;
}

export function Regions({ threads, main, inspector, footer }: RegionsProps) {
  const [preferences, prefer] = usePreferences();
  const { narrow, open, close } = useSides();
  const left = useRef<HTMLElement>(null);
  const right = useRef<HTMLElement>(null);
  const showLeft = narrow ? open === 'threads' : preferences.threads;
  const showRight = inspector !== null && (narrow ? open === 'inspector' : preferences.inspector);
  useDrawerFocus(left, narrow && showLeft);
  useDrawerFocus(right, narrow && showRight);
  const drawer = narrow && (showLeft || showRight);
  const closeOnEscape = (e: KeyboardEvent) => {
    if (e.key !== 'Escape' || e.defaultPrevented) return;
    e.preventDefault();
    close();
  };
  const dialog = narrow ? { role: 'dialog', 'aria-modal': true, tabIndex: -1, onKeyDown: closeOnEscape } as const : {};
  // A landmark is no dialog.
  const [Nav, Aside] = narrow ? ['div', 'div'] as const : ['nav', 'aside'] as const;
  return (
    <div className="studio" data-narrow={narrow || undefined} style={{ '--threads-width': `${preferences.threadsWidth}px`, '--inspector-width': `${preferences.inspectorWidth}px` } as CSSProperties}>
      <div className="regions">
        {showLeft && <Nav ref={left as RefObject<HTMLDivElement | null>} id="region-threads" className="region region-threads" aria-label="Threads" {...dialog}>
          {threads}
          {!narrow && <Separator label="threads" controls="region-threads" side="left" width={preferences.threadsWidth} min={limits.threads[0]} max={limits.threads[1]} initial={defaults.threadsWidth} onChange={(threadsWidth) => prefer({ threadsWidth })} />}
        </Nav>}
        <main id="region-main" className="region region-main" tabIndex={-1} inert={drawer}>{main}</main>
        {showRight && <Aside ref={right as RefObject<HTMLDivElement | null>} id="region-inspector" className="region region-inspector" aria-label="Inspector" {...dialog}>
          {inspector}
          {!narrow && <Separator label="inspector" controls="region-inspector" side="right" width={preferences.inspectorWidth} min={limits.inspector[0]} max={limits.inspector[1]} initial={defaults.inspectorWidth} onChange={(inspectorWidth) => prefer({ inspectorWidth })} />}
        </Aside>}
        {drawer && <div className="drawer-scrim" onClick={close} />}
      </div>
      {footer}
    </div>
  );
}
