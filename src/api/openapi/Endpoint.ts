/** The documentation of an endpoint. */
import { Record, String as Text } from "effect"
import { OpenApi } from "effect/http-api"

/** `contract` if the contract shows the endpoint, `provisional` if its shape is our decision. */
export type Stability = "contract" | "provisional"

/** A name such as `charge-payments` as one of a type: `ChargePayments`. */
export const typeName = (name: string) => name.split("-").map(Text.capitalize).join("")

interface Documentation {
  /** The resource and the verb: the names of methods in generated clients. */
  readonly operation: readonly [resource: string, verb: string]
  readonly summary: string
  readonly description: string
  readonly stability: Stability
  /** A body that gets a 200 on the demo data, for its first organization. */
  readonly request?: object
  /** The body of such a 200; by default, made of the examples of its schema. */
  readonly response?: object
}

/** A named example of a request: pages that send requests look for named ones. */
export const sent = (value: unknown) => ({ examples: { demo: { summary: "On the demo data", value } } })

const extended = (content: OpenApi.OpenApiSpecContent, extension: object) =>
  Record.map(content, (media) => ({ ...media, ...extension }))

export const annotations = ({ description, operation, request, response, stability, summary }: Documentation) =>
  OpenApi.annotations({
    identifier: `${Text.uncapitalize(typeName(operation[0]))}.${operation[1]}`,
    summary,
    description,
    override: stability === "provisional" ? { "x-provisional": true } : undefined,
    transform: ({ requestBody, responses, ...documented }) => {
      const { 200: success, ...others } = responses
      return {
        ...documented,
        ...(request && { requestBody: { ...requestBody, content: extended(requestBody.content, sent(request)) } }),
        responses: response
          ? { ...others, 200: { ...success, content: extended(success.content, { example: response }) } }
          : responses
      }
    }
  })
