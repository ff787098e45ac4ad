// Human in the loop: the agent proposes steps, and a person chooses which are taken.
import { useState } from "react";
import { useHumanInTheLoop } from "@copilotkit/react-core/v2";
import { z } from "zod";
import type { Feature } from "../feature";

const id = "human_in_the_loop";

type Step = { description: string; status: string };
type Props = { steps: Step[]; answer?: (result: unknown) => void; result?: string };

function Choose({ steps, answer, result }: Props) {
  const [left, setLeft] = useState<Record<number, boolean>>({});
  // What was chosen is in the call's result, also after a reload.
  const told = result ? (JSON.parse(result) as { accepted: boolean; steps?: Step[] }) : undefined;
  const chosen = (step: Step, n: number) =>
    told ? (told.steps ?? []).some(({ description }) => description === step.description) : !left[n];
  const count = steps.filter(chosen).length;
  return (
    <form className="card steps" data-open={answer ? "" : undefined} onSubmit={(e) => e.preventDefault()}>
      <header>
        <h3>Choose the steps</h3>
        <span>{count} of {steps.length}</span>
      </header>
      <div className="bar"><i style={{ width: `${(100 * count) / Math.max(steps.length, 1)}%` }} /></div>
      {steps.map((step, n) => (
        <label key={n}>
          <input type="checkbox" disabled={!answer} checked={chosen(step, n)} onChange={() => setLeft({ ...left, [n]: !left[n] })} />
          <span>{step.description}</span>
        </label>
      ))}
      {answer ? (
        <footer>
          <button type="button" onClick={() => answer({ accepted: true, steps: steps.filter(chosen) })}>Confirm</button>
          <button type="button" onClick={() => answer({ accepted: false })}>Reject</button>
        </footer>
      ) : null}
      {told ? <p className="told">{told.accepted ? "✓ Confirmed" : "✗ Rejected"}</p> : null}
    </form>
  );
}

function Tools() {
  useHumanInTheLoop<{ steps: Step[] }>({
    agentId: id,
    name: "generate_task_steps",
    description: "Lets the user choose which of the steps are taken.",
    parameters: z.object({
      steps: z.array(z.object({ description: z.string(), status: z.enum(["enabled", "disabled", "executing"]) })),
    }),
    render: ({ args, status, respond, result }) => {
      const steps = (args.steps ?? []).filter((step) => step?.description);
      return <Choose steps={steps} answer={respond} result={status === "complete" ? result : undefined} />;
    },
  });
  return null;
}

export const steps: Feature = {
  id,
  name: "Human in the loop",
  about: "The agent proposes steps and waits, for days if it must, until you have chosen.",
  tries: [
    { title: "A trip to Mars", message: "Plan a trip to Mars in 5 steps" },
    { title: "A big party", message: "Plan a big party in 9 steps" },
  ],
  Tools,
};
