import type { ComponentProps, ReactNode } from 'react';
import './Button.css';
import { classes } from './classes.ts';
import { Spinner } from './Spinner.tsx';
import { Tooltip } from './Tooltip.tsx';

export interface ButtonProps extends ComponentProps<'button'> {
  /** primary: the one thing to do here; danger: what cannot be undone; quiet: what is at hand without asking for attention. */
  kind?: 'default' | 'primary' | 'danger' | 'quiet';
  size?: 'normal' | 'small';
  icon?: ReactNode;
  /** Something is under way: the button waits, and keeps its width and the focus. */
  busy?: boolean;
}

export function Button({ kind = 'default', size = 'normal', icon, busy = false, className, children, onClick, ...rest }: ButtonProps) {
  return (
    <button
      type="button" {...rest} className={classes('button', className)} data-kind={kind} data-size={size}
      aria-busy={busy || undefined} aria-disabled={busy || undefined}
      onClick={busy ? (e) => e.preventDefault() : onClick}
    >
      {busy ? <Spinner /> : icon}
      {children}
    </button>
  );
}

export interface IconButtonProps extends Omit<ButtonProps, 'children' | 'icon'> {
  /** Its purpose, for everybody: it is its name, and its tooltip. */
  label: string;
  /** The key that does the same, for the tooltip. */
  keys?: string;
  children: ReactNode;
}

export function IconButton({ label, keys, kind = 'quiet', className, children, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label} keys={keys}>
      <Button {...rest} kind={kind} className={classes('icon-button', className)} aria-label={label}>{children}</Button>
    </Tooltip>
  );
}
