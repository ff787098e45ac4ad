// A failure in one panel leaves the others as they are.
import { Component, type ErrorInfo, type ReactNode } from 'react';
import { ErrorCard } from './ErrorCard.tsx';
import { loadAgain } from './later.tsx';

interface Props {
  /** The name of the panel: "The inspector". */
  name: string;
  /** When it changes, the panel is tried again: it shows something else now. */
  of?: string;
  /** The element that holds the message, if it is not where the panel would be. */
  frame?: (message: ReactNode) => ReactNode;
  children: ReactNode;
}

export class PanelBoundary extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override componentDidCatch(error: unknown, info: ErrorInfo): void {
    console.error(`${this.props.name}:`, error, info.componentStack);
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.error !== null && before.of !== this.props.of) this.#again();
  }

  #again = (): void => {
    loadAgain();
    this.setState({ error: null });
  };

  override render(): ReactNode {
    const { error } = this.state;
    const { name, frame = (message) => message, children } = this.props;
    if (error === null) return children;
    return frame(
      <div className="panel-failed">
        <ErrorCard
          title={`${name} cannot be shown`}
          error={{ code: 'page_error', message: error instanceof Error ? error.message : String(error), hint: 'The rest of the page works. Nothing on the server has changed.' }}
          onRetry={this.#again}
        />
      </div>,
    );
  }
}
