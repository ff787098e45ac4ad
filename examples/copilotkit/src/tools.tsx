// The page's view of tools, the tools it runs itself, and its questions to the person.
import { useAgent, useFrontendTool, useHumanInTheLoop, useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";
import { z } from "zod";
import { agentId } from "./where";

export function Tools() {
  const { agent } = useAgent({ agentId });
  useRenderTool({
    name: "calculate",
    parameters: z.object({ expression: z.string() }),
    render: ({ status, parameters, result }) => (
      <p className="card calculation">
        {parameters?.expression} = <b>{status === "complete" ? result : "…"}</b>
      </p>
    ),
  });
  useRenderTool({
    name: "charge_card",
    parameters: z.object({ amount: z.number(), currency: z.string() }),
    render: ({ status, parameters, result }) => (
      <p className="card charge">
        Charge {parameters?.amount} {parameters?.currency}: <b>{status === "complete" ? result : "…"}</b>
      </p>
    ),
  });
  useFrontendTool({
    name: "paint",
    description: "Changes the color of the page.",
    parameters: z.object({ color: z.string() }),
    handler: async ({ color }) => {
      document.body.dataset.color = color;
      document.body.style.setProperty("--page-accent", color);
      return `The page is ${color} now.`;
    },
  });
  useHumanInTheLoop({
    name: "confirm",
    description: "Asks the person to confirm.",
    parameters: z.object({ what: z.string() }),
    render: ({ args, status, respond }) => (
      <p className="card confirm">
        {args.what} {status === "executing" && respond ? <button onClick={() => respond("The person has confirmed.")}>Confirm</button> : null}
      </p>
    ),
  });
  useInterrupt({
    agentId,
    render: ({ interrupt, resolve, cancel }) =>
      interrupt?.reason === "tool_call" ? (
        <Approval interrupt={interrupt} answer={resolve} />
      ) : (
        <Question interrupt={interrupt} answer={resolve} cancel={cancel} />
      ),
  });
  return Object.keys(agent.state ?? {}).length > 0 ? <pre className="state">{JSON.stringify(agent.state, null, 1)}</pre> : null;
}

/** May a tool be called? The person may change its arguments first. */
function Approval({ interrupt, answer }) {
  const args = interrupt.metadata?.arguments ?? {};
  const approve = (form: HTMLFormElement) => {
    const written = Object.entries(args).map(([name, was]) => {
      const text = String(new FormData(form).get(name));
      return [name, typeof was === "number" ? Number(text) : text];
    });
    const editedArgs = Object.fromEntries(written);
    const edited = JSON.stringify(editedArgs) !== JSON.stringify(args);
    answer({ approved: true, ...(edited ? { editedArgs } : {}) }, interrupt.id);
  };
  return (
    <form className="card approval" onSubmit={(e) => { e.preventDefault(); approve(e.currentTarget); }}>
      <p>{interrupt.message}</p>
      <div className="arguments">
        {Object.entries(args).map(([name, value]) => (
          <label key={name}>{name} <input name={name} defaultValue={String(value)} /></label>
        ))}
      </div>
      <button>Approve</button>
      <button type="button" onClick={() => answer({ approved: false, reason: "The person said no." }, interrupt.id)}>Deny</button>
    </form>
  );
}

/** A question of the agent, with a button for each of its choices. */
function Question({ interrupt, answer, cancel }) {
  const choices: string[] = interrupt?.responseSchema?.properties?.answer?.enum ?? [];
  const say = (form: HTMLFormElement) => answer({ answer: String(new FormData(form).get("answer")) }, interrupt?.id);
  return (
    <form className="card question" onSubmit={(e) => { e.preventDefault(); say(e.currentTarget); }}>
      <p>{interrupt?.message}</p>
      {choices.map((choice) => (
        <button type="button" key={choice} onClick={() => answer({ answer: choice }, interrupt?.id)}>{choice}</button>
      ))}
      {choices.length === 0 ? <><input name="answer" aria-label="Answer" /><button>Answer</button></> : null}
      <button type="button" onClick={() => cancel(interrupt?.id)}>No answer</button>
    </form>
  );
}
