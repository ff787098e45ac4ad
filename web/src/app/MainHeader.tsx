// The bar over the middle region: what is shown, and the buttons that open the sides.
import type { ReactNode } from 'react';
import { IconButton } from '../ui/Button.tsx';
import { PanelLeftIcon, PanelRightIcon } from '../ui/icons.tsx';
import './MainHeader.css';
import { useSides } from './sides.tsx';

export interface MainHeaderProps {
  /** The title of the middle, in a heading. */
  title: ReactNode;
  /** Beside the title: standing, agent. */
  children?: ReactNode;
  /** On the right: what one can do. */
  actions?: ReactNode;
  /** Whether there is an inspector here. */
  inspector?: boolean;
}

export function MainHeader({ title, children, actions, inspector = false }: MainHeaderProps) {
  const { isOpen, toggle, narrow } = useSides();
  return (
    <header className="main-header">
      {(narrow || !isOpen('threads')) && (
        <IconButton label="Show threads" aria-expanded={isOpen('threads')} onClick={() => toggle('threads')}><PanelLeftIcon /></IconButton>
      )}
      <h1 className="main-title">{title}</h1>
      <div className="main-about">{children}</div>
      <div className="row">
        {actions}
        {inspector && (
          <IconButton label={isOpen('inspector') ? 'Hide the inspector' : 'Show the inspector'} keys="i" aria-expanded={isOpen('inspector')} onClick={() => toggle('inspector')}><PanelRightIcon /></IconButton>
        )}
      </div>
    </header>
  );
}
