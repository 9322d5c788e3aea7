/** Requests by pages of other origins (CORS), which browsers send only if the service allows it. */
import { Context } from "effect"
import { HttpMiddleware } from "effect/http"
import { headerNames } from "../api/openapi/Document.ts"

/** The origins whose pages may use the APIs; by default none. */
export const CrossOrigins = Context.Reference<ReadonlyArray<string>>("practice-data/http/CrossOrigin/CrossOrigins", {
  defaultValue: () => []
})

/** True if a text is an origin as browsers send it. */
export const isOrigin = (text: string): boolean =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text

/** In seconds. Chromium keeps the answer to a preflight no longer. */
const maxAge = 7200

/** Adds the headers for these origins, and answers preflights. None for no origin. */
export const middleware = (origins: ReadonlyArray<string>) =>
  origins.length === 0
    ? undefined
    : HttpMiddleware.cors({
        allowedOrigins: (origin) => origins.includes(origin),
        allowedMethods: ["GET", "POST"],
        exposedHeaders: [...headerNames, "date", "deprecation", "sunset"],
        maxAge
      })
