// What the page knows of a feature of the dojo.
import type { ComponentType } from "react";

export type Feature = {
  /** The agent's name. */
  id: string;
  name: string;
  /** What there is to see, in a sentence. */
  about: string;
  /** What can be said to the demo. */
  tries: { title: string; message: string }[];
  /** The part of the page beside the chat, if the feature has one. */
  Stage?: ComponentType;
  /** The page's tools, its views of tools and its questions; it shows nothing by itself. */
  Tools?: ComponentType;
  /** Whether files can be sent. */
  files?: boolean;
};
