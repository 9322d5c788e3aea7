/** What an endpoint says of itself in the OpenAPI document. */
import { Predicate, Record, String as Text } from "effect"
import { OpenApi } from "effect/http-api"

/** Whether the contract shows an endpoint, or we decided its shape. */
export type Stability = "contract" | "provisional"

/** A name such as `charge-payments` as one of a type: `ChargePayments`. */
export const typeName = (name: string) => name.split("-").map(Text.capitalize).join("")

interface Documentation {
  /** The resource and what is done with it. Clients that are generated name their methods by them. */
  readonly operation: readonly [resource: string, verb: string]
  readonly summary: string
  readonly description: string
  readonly stability: Stability
  /** A body that gets a 200 on the demo data, for its first organization. */
  readonly request?: object
  /** The body of such a 200. Where there is none, it is made of the examples of its schema. */
  readonly response?: object
}

/** Examples of what is sent, by the name of the only one: pages that send requests look for named ones. */
export const sent = (value: unknown) => ({ examples: { demo: { summary: "On the demo data", value } } })

const extended = (content: unknown, extension: object) =>
  Predicate.isObject(content)
    ? Record.map(content, (media) => (Predicate.isObject(media) ? { ...media, ...extension } : media))
    : content

/** The annotations of an endpoint. */
export const annotations = ({ description, operation, request, response, stability, summary }: Documentation) =>
  OpenApi.annotations({
    identifier: `${Text.uncapitalize(typeName(operation[0]))}.${operation[1]}`,
    summary,
    description,
    override: stability === "provisional" ? { "x-provisional": true } : undefined,
    transform: ({ requestBody, responses, ...documented }) => ({
      ...documented,
      ...(request === undefined
        ? {}
        : { requestBody: { ...requestBody, content: extended(requestBody.content, sent(request)) } }),
      responses:
        response === undefined
          ? responses
          : {
              ...responses,
              200: { ...responses[200], content: extended(responses[200].content, { example: response }) }
            }
    })
  })
