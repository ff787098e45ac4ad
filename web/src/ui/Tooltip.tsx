import { Tooltip as Base } from '@base-ui/react/tooltip';
import type { ReactElement } from 'react';
import { Kbd } from './Kbd.tsx';
import './layers.css';

/** Says more about what it is around, on hover and on focus. It is not the only place where that is said: touch has no tooltips. */
export function Tooltip({ text, keys, children }: { text: string; keys?: string; children: ReactElement }) {
  return (
    <Base.Root>
      <Base.Trigger render={children} />
      {/* A landmark, as everything on a page is in one. */}
      <Base.Portal render={<section aria-label="Tip" />}>
        <Base.Positioner className="positioner" sideOffset={6} collisionPadding={8}>
          <Base.Popup className="tooltip">
            {text}
            {keys && <Kbd keys={keys} />}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

/** Around the page: after one tooltip, the next ones come at once. */
export const TooltipProvider = Base.Provider;
