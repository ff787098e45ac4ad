// Agentic generative UI: the page draws the state that the agent changes while it works.
import { useAgent } from "@copilotkit/react-core/v2";
import type { Feature } from "../feature";

const id = "agentic_generative_ui";

type Task = { description: string; status: string };

function Stage() {
  const { agent } = useAgent({ agentId: id });
  const tasks: Task[] = agent.state?.steps ?? [];
  const done = tasks.filter(({ status }) => status === "completed").length;
  if (tasks.length === 0) return <p className="empty">The plan is shown here, as the agent carries it out.</p>;
  return (
    <section className="paper tasks">
      <header>
        <h3>{done === tasks.length ? "All done" : "At work"}</h3>
        <span>{done} of {tasks.length}</span>
      </header>
      <div className="bar"><i style={{ width: `${(100 * done) / tasks.length}%` }} /></div>
      <ol>
        {tasks.map(({ description, status }, n) => (
          <li key={n} data-status={status} data-now={n === done ? "" : undefined}>{description}</li>
        ))}
      </ol>
    </section>
  );
}

export const tasks: Feature = {
  id,
  name: "Agentic generative UI",
  about: "The agent changes the shared state while it works, and the page draws it.",
  tries: [
    { title: "A trip to Mars", message: "Plan a trip to Mars in 6 steps" },
    { title: "A big party", message: "Plan a big party in 10 steps" },
  ],
  Stage,
};
