/**
 * Access to the operators' listener. Its pages are for this machine alone: an SSH tunnel, `kubectl port-forward` and a proxy
 * that authenticates reach them too. Monitors read metrics and health from anywhere that reaches the port.
 */
import { Effect, Option } from "effect"
import { HttpMiddleware, HttpServerRequest, HttpServerResponse } from "effect/http"
import { secured } from "../http/Html.ts"
import { isLoopback } from "./Settings.ts"

type Request = HttpServerRequest.HttpServerRequest

const isForMonitors = ({ url }: Request) => /^\/(metrics|health)(\?|$)/.test(url)

/** True if `Host` names this machine. Another name that resolves to it would make a foreign page one of ours. */
const namesLoopback = ({ headers }: Request) => {
  const name = /^(?:\[([\da-f:.]+)\]|([^:]*))(?::\d+)?$/i.exec(headers["host"] ?? "")
  return isLoopback((name?.[1] ?? name?.[2] ?? "").toLowerCase())
}

const isLocal = (request: Request) =>
  namesLoopback(request) &&
  Option.match(request.remoteAddress, {
    onNone: () => true,
    onSome: (address) => isLoopback(address.replace(/^::ffff:/, ""))
  })

const refused = HttpServerResponse.text(
  "The operators' pages are for this machine alone, by the hosts localhost, 127.0.0.1 and ::1. Use an SSH tunnel or kubectl port-forward, or a proxy on this machine that authenticates its clients and sends one of these as Host.\n",
  { status: 403 }
)

/** Refuses requests without access, and protects responses. */
export const guard = HttpMiddleware.make((httpEffect) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const response = isForMonitors(request) || isLocal(request) ? yield* httpEffect : refused
    return secured(
      HttpServerResponse.setHeaders(response, { "cache-control": "no-store", ...response.headers }),
      "linked"
    )
  })
)
