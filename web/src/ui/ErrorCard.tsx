import type { ReactNode } from 'react';
import { Button } from './Button.tsx';
import { CopyButton } from './CopyButton.tsx';
import './ErrorCard.css';
import { RetryIcon, WarningIcon } from './icons.tsx';

/** An error as the server sends it, or as something that can be told the same way. */
export interface Failure {
  code?: string;
  message: string;
  /** The next step. */
  hint?: string;
}

/** Anything that was thrown, in these terms. */
export function failureOf(error: unknown): Failure {
  if (typeof error === 'object' && error !== null && 'message' in error) {
    const { code, message, hint } = error as { code?: unknown; message: unknown; hint?: unknown };
    return { code: typeof code === 'string' ? code : undefined, message: String(message), hint: typeof hint === 'string' && hint ? hint : undefined };
  }
  return { message: String(error) };
}

export interface ErrorCardProps {
  title?: string;
  error: Failure;
  onRetry?: () => void;
  retry?: string;
  /** More one can do. */
  actions?: ReactNode;
  /** Whether it is said at once. Not for what stood there before one came. */
  alert?: boolean;
}

export function ErrorCard({ title = 'Something went wrong', error, onRetry, retry = 'Try again', actions, alert = false }: ErrorCardProps) {
  return (
    <section className="error-card" role={alert ? 'alert' : undefined} aria-label={title}>
      <WarningIcon />
      <div className="error-body">
        <p className="error-title">{title}{error.code && <code className="error-code">{error.code}</code>}</p>
        <p>{error.message}</p>
        {error.hint && <p className="error-hint">{error.hint}</p>}
        <div className="row wrap error-actions">
          {onRetry && <Button size="small" icon={<RetryIcon />} onClick={onRetry}>{retry}</Button>}
          {actions}
          <CopyButton text={() => [title, error.code, error.message, error.hint].filter(Boolean).join('\n')} label="Copy this error" />
        </div>
      </div>
    </section>
  );
}
