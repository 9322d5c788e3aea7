// Made by `npm run generate` from the OpenAPI documents of the APIs. Change these instead.

/** The version of this package. */
export const version = "0.1.0"
