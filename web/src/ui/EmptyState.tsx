import type { ReactNode } from 'react';
import './EmptyState.css';

/** Nothing is here yet: what would be, and how it comes. */
export function EmptyState({ icon, title, children, actions }: { icon?: ReactNode; title: string; children?: ReactNode; actions?: ReactNode }) {
  return (
    <div className="empty-state">
      {icon && <span className="empty-icon">{icon}</span>}
      <p className="empty-title">{title}</p>
      {children && <div className="empty-about">{children}</div>}
      {actions && <div className="row wrap empty-actions">{actions}</div>}
    </div>
  );
}
