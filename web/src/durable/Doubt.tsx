// A call in doubt: what it means, and what each answer does.
import './Doubt.css';

/** Whether a question is about a call in doubt. */
export const isDoubt = (interrupt: { readonly reason: string }): boolean => interrupt.reason === 'holdfast:in_doubt';

/** Beside the question whether a call happened. */
export function Doubt() {
  return (
    <section className="durable-doubt" aria-label="A call in doubt">
      <p>The call was started, and its process died before a result was saved. It is in doubt: Holdfast does not start it again by itself, because it must not happen twice. Look where it would have left a trace.</p>
      <dl>
        <dt>happened</dt><dd>The model is told that it took effect, with the result that you give.</dd>
        <dt>did not happen</dt><dd>The model is told so, and may try again.</dd>
        <dt>run again</dt><dd>It is started once more.</dd>
      </dl>
    </section>
  );
}
