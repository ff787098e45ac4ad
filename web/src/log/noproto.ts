// In place of @ag-ui/proto: the page asks for text/event-stream and is never answered in
// protobuf, whose code would be a tenth of what it loads.

/** The type of an answer in protobuf, as the client knows it. */
export const AGUI_MEDIA_TYPE = 'application/vnd.ag-ui.event+proto';

/** The error that an unknown event in protobuf would throw. */
export class AGUIUnknownEventTypeError extends Error {}

const refuse = (): never => {
  throw new Error('This page does not read protobuf.');
};

export const decode = refuse;
export const encode = refuse;
