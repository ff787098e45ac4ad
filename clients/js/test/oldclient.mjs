// A resolve hook: with it, @ag-ui/client is the older client.
export const resolve = (name, context, next) => next(name === '@ag-ui/client' ? 'client-0-0-59' : name, context);
