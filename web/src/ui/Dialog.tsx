import { AlertDialog as BaseAlert } from '@base-ui/react/alert-dialog';
import { Dialog as Base } from '@base-ui/react/dialog';
import { useRef, type ReactNode, type RefObject } from 'react';
import { Button, IconButton } from './Button.tsx';
import { CloseIcon } from './icons.tsx';
import './layers.css';

export interface DialogProps {
  open: boolean;
  /** Without it only what is in the dialog ends it. */
  onClose?: () => void;
  title: string;
  /** A sentence under the title. */
  about?: ReactNode;
  size?: 'normal' | 'wide';
  /** Buttons at the end; the last is what most people want. */
  actions?: ReactNode;
  /** The element that has the focus first; without it, the first thing that can have it. */
  focus?: RefObject<HTMLElement | null>;
  children?: ReactNode;
}

/** A dialog over the page. Escape, a click beside it and its button close it; the focus goes back to where it was. */
export function Dialog({ open, onClose, title, about, size = 'normal', actions, focus, children }: DialogProps) {
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose?.()}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className="dialog" data-size={size} initialFocus={focus}>
          <div className="dialog-head">
            <Base.Title className="dialog-title">{title}</Base.Title>
          </div>
          {about && <Base.Description className="dialog-about" render={<div />}>{about}</Base.Description>}
          {children && <div className="dialog-body">{children}</div>}
          {actions && <div className="dialog-actions">{actions}</div>}
          {/* The last, so that the focus is first on what the dialog is about. */}
          {onClose && <Base.Close render={<IconButton className="dialog-close" label="Close"><CloseIcon /></IconButton>} />}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

export interface AlertDialogProps {
  open: boolean;
  onClose: () => void;
  /** The question: "Delete this thread?" */
  title: string;
  /** The consequence. */
  about: ReactNode;
  /** The label of the button that does it: a verb, as in the title. */
  confirm: string;
  onConfirm: () => void;
  danger?: boolean;
  busy?: boolean;
  children?: ReactNode;
}

/** Asks before something is done. A click beside it does not close it, and the focus is first where nothing happens. */
export function AlertDialog({ open, onClose, title, about, confirm, onConfirm, danger = false, busy = false, children }: AlertDialogProps) {
  const cancel = useRef<HTMLButtonElement>(null);
  return (
    <BaseAlert.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <BaseAlert.Portal>
        <BaseAlert.Backdrop className="backdrop" />
        <BaseAlert.Popup className="dialog" initialFocus={cancel}>
          <div className="dialog-head"><BaseAlert.Title className="dialog-title">{title}</BaseAlert.Title></div>
          <BaseAlert.Description className="dialog-about" render={<div />}>{about}</BaseAlert.Description>
          {children && <div className="dialog-body">{children}</div>}
          <div className="dialog-actions">
            <BaseAlert.Close render={<Button ref={cancel}>Cancel</Button>} />
            <Button kind={danger ? 'danger' : 'primary'} busy={busy} onClick={onConfirm}>{confirm}</Button>
          </div>
        </BaseAlert.Popup>
      </BaseAlert.Portal>
    </BaseAlert.Root>
  );
}
