/** Reads and checks JSON bodies, before and after their fields are decoded. */
import { isUtf8 } from "node:buffer"
import { Bytes, Context, Effect, Layer, Option, Result, Schema, SchemaAST, Stream } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiError, type HttpApiEndpoint } from "effect/http-api"
import { EncodingUnsupported, errorResponse, PayloadTooLarge, RequestInvalid, ServiceBusy } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, maximumFaults, tooLong, validationErrors } from "../api/Faults.ts"
import { note } from "../observability/RequestFacts.ts"
import { CurrentOrganization, JsonBody } from "../api/Authorization.ts"
import { faultAt, mayRepeat, type Shape, type Wanted } from "./JsonPruning.ts"
import * as LargeBodies from "./LargeBodies.ts"
import { beginReading } from "./ServedRequest.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Bytes. A body of no more is checked at once. */
const smallBody = 64 * 1024

const isEncoded = (contentEncoding = "") => !["", "identity"].includes(contentEncoding.trim().toLowerCase())

export const isJson = (contentType: string | undefined) =>
  contentType === "application/json" || contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json"

/** Refuses a request that is encoded, is not JSON, or has a query string. */
const checkRequest = (
  { headers }: Request,
  query: HttpServerRequest.ParsedSearchParams["Service"]
): Effect.Effect<void, EncodingUnsupported | RequestInvalid> => {
  if (isEncoded(headers["content-encoding"])) return Effect.fail(new EncodingUnsupported())
  const extras = Object.keys(query).map((name) => ({ loc: ["query", name], ...faults.extra }))
  if (!isJson(headers["content-type"])) {
    return Effect.fail(invalidRequest([{ loc: ["header", "content-type"], ...faults.contentType }, ...extras]))
  }
  return extras.length > 0 ? Effect.fail(invalidRequest(extras)) : Effect.void
}

/** A body whose endpoint decodes it itself. */
interface Received {
  readonly bytes: Uint8Array
  /** Reads its JSON, pruned if it is large, once: the bytes are gone afterwards. */
  readonly text: Effect.Effect<string, RequestInvalid | LargeBodies.LargeBodiesBusy>
}

/** The body of the current request. */
export const ReceivedBody = Context.Reference<Received>("practice-data/http/JsonBodyServer/ReceivedBody", {
  defaultValue: () => ({ bytes: new Uint8Array(), text: Effect.succeed("") })
})

const shapeOf = (ast: SchemaAST.AST): Shape => {
  if (SchemaAST.isObjects(ast)) {
    return { fields: new Map(ast.propertySignatures.map(({ name, type }) => [String(name), shapeOf(type)])) }
  }
  return SchemaAST.isArrays(ast) && ast.rest[0] !== undefined ? { item: shapeOf(ast.rest[0]) } : {}
}

/** The part of a request body that its schema looks at. Objects and lists that can be null are not looked into. */
export const wantedBy = ({ ast }: Schema.Top): Wanted => ({
  shape: shapeOf(SchemaAST.toEncoded(ast)),
  maximumItems: SchemaAST.resolveAt<number>("maximumItems")(ast) ?? Infinity,
  maximumUnknown: maximumFaults
})

/** An endpoint whose payloads have a type. */
interface Endpoint<Payload> {
  readonly payload: HttpApiEndpoint.PayloadMap
  readonly "~Payload": { readonly Type: Payload }
}

const schemaOf = ({ payload }: Pick<Endpoint<unknown>, "payload">): Schema.Top =>
  Array.from(payload.values()).flatMap(({ schemas }) => schemas)[0] ?? Schema.Unknown

/** Decodes the payloads of an endpoint as its API does. An invalid one is undefined. */
export const decoderOf = <Payload>(endpoint: Endpoint<Payload>) => {
  const codec = Schema.toCodecJson(Schema.make<Schema.Codec<Payload>>(schemaOf(endpoint).ast))
  const decode = Schema.decodeUnknownOption(codec, { onExcessProperty: "error" })
  return (payload: unknown): Payload | undefined => Option.getOrUndefined(decode(payload))
}

const missing = invalidAt(["body"], faults.missing)
const isMissing = (text: string) => ["", "null"].includes(text.trim())

const invalidJson = (at: number) => invalidAt(["body", at], faults.json)

/** The value of a small or pruned text. */
export const parse = (text: string): Result.Result<unknown, RequestInvalid> =>
  isMissing(text)
    ? Result.fail(missing)
    : Result.try({ try: (): unknown => JSON.parse(text), catch: () => invalidJson(faultAt(text) ?? 0) })

const decoder = new TextDecoder()

/** The text of a body, pruned if it is large. A small one may be no JSON, but has no name twice in an object. */
const textOf = (
  sender: LargeBodies.Sender,
  bytes: Uint8Array<ArrayBuffer>,
  wanted: Wanted
): Effect.Effect<string, RequestInvalid | LargeBodies.LargeBodiesBusy> => {
  if (bytes.length <= smallBody) {
    const text = decoder.decode(bytes)
    const at = mayRepeat(text) ? faultAt(text) : undefined
    return at === undefined ? Effect.succeed(text) : Effect.fail(invalidJson(at))
  }
  return Effect.flatMap(LargeBodies.prune(sender, bytes, wanted), (pruned) => {
    if ("text" in pruned) return Effect.succeed(pruned.text)
    return Effect.fail(
      "items" in pruned
        ? invalidAt(["body"], tooLong(wanted.maximumItems, pruned.items))
        : invalidJson(pruned.invalidAt)
    )
  })
}

const notUtf8 = invalidAt(["body", 0], faults.json)

const tooLarge = (maxBytes: number) =>
  Effect.andThen(note({ refusal: "too_large" }), Effect.fail(PayloadTooLarge.over(maxBytes)))

interface Reading {
  readonly maxBytes: number
  readonly budget: LargeBodies.Budget
  /** The owner of the body in the budget. */
  readonly owner: string
}

/** Reads the body of a request. Its bytes count until the request is over. */
export const readBody = Effect.fnUntraced(function* (request: Request, { budget, maxBytes, owner }: Reading) {
  if (!beginReading(request.source)) return yield* LargeBodies.busy
  const pieces: Array<Uint8Array> = []
  let length = 0
  let taken = 0
  yield* Effect.addFinalizer(() => Effect.sync(() => budget.take(owner, -taken)))
  const add = (piece: Uint8Array): Effect.Effect<void, PayloadTooLarge | LargeBodies.LargeBodiesBusy> => {
    length += piece.length
    if (length > maxBytes) return tooLarge(maxBytes)
    const more = Math.max(0, length - LargeBodies.uncounted) - taken
    if (!budget.take(owner, more)) {
      LargeBodies.free(piece)
      return Effect.fail(LargeBodies.busy)
    }
    taken += more
    pieces.push(piece)
    return Effect.void
  }
  yield* request.stream.pipe(
    Stream.mapError(() => notUtf8),
    Stream.runForEach(add)
  )
  const body = Bytes.concat(pieces)
  for (const piece of pieces) if (piece.buffer !== body.buffer) LargeBodies.free(piece)
  return body
})

/** A request whose text was read already, as its handlers see it. */
const withText = (request: Request, text: string) => {
  const read = Effect.succeed(text)
  return new Proxy(request, { get: (target, name): unknown => (name === "text" ? read : Reflect.get(target, name)) })
}

/** Turns an error of the endpoint's schema into a 422 that lists the faults of the headers or of the body, a text. */
const refusing = <A, E, R>(handled: Effect.Effect<A, E, R>, text: string): Effect.Effect<A, E | RequestInvalid, R> =>
  Effect.catch(handled, (error): Effect.Effect<never, E | RequestInvalid> => {
    if (!HttpApiError.HttpApiSchemaError.is(error)) return Effect.fail(error)
    const { cause, kind } = error
    if (kind === "Headers") return Effect.fail(invalidRequest(validationErrors(cause.issue, ["header"])))
    if (kind !== "Payload") return Effect.fail(error)
    return Effect.flatMap(Effect.fromResult(parse(text)), () =>
      Effect.fail(invalidRequest(validationErrors(cause.issue, ["body"])))
    )
  })

const serviceBusy = Effect.succeed(errorResponse(new ServiceBusy()))

/** Finds the sender of a large body before it is read. */
type SenderOf = (request: Request) => Effect.Effect<LargeBodies.Sender>

const stranger: LargeBodies.Sender = { group: "stranger", owner: "" }

// A large body is read for the holder of a key only.
const keyHolder: SenderOf = () =>
  Effect.map(Effect.serviceOption(CurrentOrganization), (organization) =>
    Option.isSome(organization) ? { group: "key", owner: organization.value.id } : stranger
  )

interface Options {
  /** The maximum size of a body in bytes. A larger one is a 413. */
  readonly maxBytes: number
  /** True if the endpoints decode `ReceivedBody` themselves. */
  readonly isRaw?: boolean
  /** The response while other large bodies use up the budget; by default a 503. */
  readonly busy?: Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    RequestInvalid,
    HttpServerRequest.HttpServerRequest
  >
  readonly budgets?: LargeBodies.Budgets
}

/**
 * Reads bodies, and prunes large ones to what the endpoint looks at.
 *
 * @param senders by default, the organizations of API keys
 */
export const layer = <R = never>(
  { budgets = LargeBodies.budgets, busy = serviceBusy, isRaw = false, maxBytes }: Options,
  senders: Effect.Effect<SenderOf, never, R> = Effect.succeed(keyHolder)
) => {
  const answerBusy = Effect.andThen(note({ refusal: "load" }), busy)
  const make = (senderOf: SenderOf) =>
    JsonBody.of((httpEffect, { endpoint }) => {
      const wanted = wantedBy(schemaOf(endpoint))
      return Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        yield* checkRequest(request, yield* HttpServerRequest.ParsedSearchParams)
        const isLarge = LargeBodies.mayBeLarge(request)
        if (isLarge && Number(request.headers["content-length"] ?? 0) > maxBytes) return yield* tooLarge(maxBytes)
        const sender = isLarge ? yield* senderOf(request) : stranger
        const bytes = yield* readBody(request, { maxBytes, budget: budgets[sender.group], owner: sender.owner })
        if (!isUtf8(bytes)) return yield* notUtf8
        const text = textOf(sender, bytes, wanted)
        if (isRaw) return yield* Effect.provideService(refusing(httpEffect, ""), ReceivedBody, { bytes, text })
        const read = yield* text
        return yield* Effect.provideService(
          refusing(httpEffect, read),
          HttpServerRequest.HttpServerRequest,
          withText(request, read)
        )
      }).pipe(
        Effect.catchIf(
          (error) => error instanceof LargeBodies.LargeBodiesBusy,
          () => answerBusy
        )
      )
    })
  return Layer.effect(JsonBody, Effect.map(senders, make))
}
