import { Popover as Base } from '@base-ui/react/popover';
import type { ReactElement, ReactNode } from 'react';
import './layers.css';

/** More about something, behind a button: one can select and click in it, unlike in a tooltip. */
export function Popover({ trigger, title, align = 'start', children }: { trigger: ReactElement; title: string; align?: 'start' | 'center' | 'end'; children: ReactNode }) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className="positioner" sideOffset={6} align={align} collisionPadding={8}>
          <Base.Popup className="popup popover">
            <Base.Title className="popover-title" render={<h2 />}>{title}</Base.Title>
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
