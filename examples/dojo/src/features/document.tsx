// Predictive state updates: the document is seen while the agent writes it, and kept if you say so.
import { useAgent, useInterrupt } from "@copilotkit/react-core/v2";
import type { Feature } from "../feature";

const id = "predictive_state_updates";

/** A document in Markdown, as far as the demo writes it. */
function Text({ of }: { of: string }) {
  const blocks = of.split(/\n\n+/).filter(Boolean);
  return <>{blocks.map((block, n) => (block.startsWith("# ") ? <h2 key={n}>{block.slice(2)}</h2> : <p key={n}>{block}</p>))}</>;
}

function Stage() {
  const { agent } = useAgent({ agentId: id });
  const kept: string = agent.state?.document ?? "";
  const question = useInterrupt({
    agentId: id,
    renderInChat: false,
    render: ({ interrupt, resolve }) => (
      <article className="paper document" data-asks="">
        <aside>
          <span>Keep this version?</span>
          <button type="button" onClick={() => resolve({ approved: true }, interrupt?.id)}>Keep it</button>
          <button type="button" onClick={() => resolve({ approved: false }, interrupt?.id)}>Refuse it</button>
        </aside>
        <Text of={(interrupt?.metadata?.arguments as { document?: string })?.document ?? ""} />
      </article>
    ),
  });
  if (question) return question;
  if (!kept) return <p className="empty">The document is shown here, while the agent writes it.</p>;
  return <article className="paper document" data-writes={agent.isRunning ? "" : undefined}><Text of={kept} /></article>;
}

export const written: Feature = {
  id,
  name: "Predictive state updates",
  about: "You see the document while the agent writes it, and it is kept if you say so.",
  tries: [
    { title: "A story of a pirate", message: "Write a story about a pirate" },
    { title: "A story of a mermaid", message: "Write a story about a mermaid" },
  ],
  Stage,
};
