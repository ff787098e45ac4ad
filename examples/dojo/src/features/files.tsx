// Multimodal: files go to the agent, and the images that it makes come back.
import type { ReactActivityMessageRenderer } from "@copilotkit/react-core/v2";
import { z } from "zod";
import type { Feature } from "../feature";

/** The images that models make are activities of the history. */
export const images: ReactActivityMessageRenderer<{ url: string }>[] = [
  {
    activityType: "holdfast.image",
    content: z.object({ url: z.string() }),
    render: ({ content }) => <img className="painted" alt="painted by the agent" src={content.url} />,
  },
];

export const files: Feature = {
  id: "agentic_chat_multimodal",
  name: "Multimodal",
  about: "Send a file with the + beside your message, and ask what it is; or let the agent paint.",
  tries: [
    { title: "Paint", message: "paint the sea" },
    { title: "What is this?", message: "What is this?" },
  ],
  files: true,
};
