// Interrupts: a tool of the server asks a person, and the run ends until there is an answer.
import { useInterrupt } from "@copilotkit/react-core/v2";
import type { Feature } from "../feature";

const id = "interrupt";

function Tools() {
  useInterrupt({
    agentId: id,
    render: ({ interrupt, resolve }) => {
      const { topic, attendee } = (interrupt?.metadata ?? {}) as { topic?: string; attendee?: string };
      const slots: string[] = interrupt?.responseSchema?.properties?.chosen_label?.enum ?? [];
      return (
        <section className="card meeting">
          <h3>{topic ?? "A meeting"}</h3>
          {attendee ? <p>with {attendee}</p> : null}
          <p>{interrupt?.message}</p>
          <div className="slots">
            {slots.map((slot) => (
              <button type="button" key={slot} onClick={() => resolve({ chosen_label: slot }, interrupt?.id)}>{slot}</button>
            ))}
          </div>
          <button type="button" className="quiet" onClick={() => resolve({ cancelled: true }, interrupt?.id)}>Cancel</button>
        </section>
      );
    },
  });
  return null;
}

export const meeting: Feature = {
  id,
  name: "Interrupts",
  about: "A tool of the server asks you for the time, and you may answer tomorrow.",
  tries: [
    { title: "A call with sales", message: "Book a call about prices with the sales team" },
    { title: "A review with Alice", message: "Schedule a review with Alice" },
  ],
  Tools,
};
