/**
 * The public errors of the service. Each has its HTTP status on its class, and `respond` gives the form in which
 * it is answered: a body of the documented shape, plus the headers that a client needs to act on it.
 *
 * Contract: sections 2.11 and 7.
 */
import { Duration, Schema, SchemaAST, SchemaTransformation } from "effect"
import { HttpApiSchema } from "effect/http-api"

/** The body of every error but 422. */
export const ErrorDetail = Schema.Struct({
  detail: Schema.String.annotate({ description: "What went wrong, for a person to read." })
}).annotate({ identifier: "ErrorDetail" })

/** One fault of a request: where it is, what is wrong, and the kind of the fault for a program to act on. */
export const ValidationError = Schema.Struct({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Int])).annotate({
    description:
      "Where the fault is: `body`, `header` or `query`, then names and array positions. Of a name of more than 64 characters, the first 64 and an ellipsis."
  }),
  msg: Schema.String.annotate({ description: "What is wrong, for a person to read." }),
  type: Schema.String.annotate({ description: "The kind of the fault, such as `string_type`." })
}).annotate({ identifier: "ValidationError" })
export type ValidationError = typeof ValidationError.Type

/** The body of a 422: the faults of the request, all at once, up to a hundred. */
export const HTTPValidationError = Schema.Struct({ detail: Schema.Array(ValidationError) }).annotate({
  identifier: "HTTPValidationError",
  description:
    "The faults of the request, in the order of the endpoint's fields, unknown fields last. The list ends after 100 faults, whether or not there are more."
})

/**
 * 400: a value that the endpoint cannot work with. One class for the status, since the body tells a client no more
 * than its text.
 */
export class BadRequest extends Schema.TaggedError<BadRequest>()(
  "BadRequest",
  { detail: Schema.String },
  { httpApiStatus: 400 }
) {
  /** The body names an organization other than the key's. */
  static readonly otherOrganization = new BadRequest({
    detail: "organization does not match the organization of the API key"
  })

  /** The id of a single-record read is missing or blank. */
  static readonly blankId = new BadRequest({ detail: "id is required and cannot be blank" })

  /** The clinic of a processor read is blank. */
  static readonly blankClinic = new BadRequest({ detail: "clinic cannot be blank" })

  /** The organization has no such clinic, whether or not another one has. */
  static readonly unknownClinic = new BadRequest({ detail: "The organization has no such clinic" })

  /** The clinic has no processor account, or none any more. */
  static readonly noAccount = new BadRequest({ detail: "The clinic has no connected payment processor account" })

  /** The account has no object with the id of starting_after. */
  static readonly unknownCursor = new BadRequest({
    detail: "starting_after is not the id of an object of the clinic's account"
  })

  /** limit or offset out of range. */
  static readonly outOfRange = (name: string, minimum: number, maximum: number) =>
    new BadRequest({ detail: `${name} must be between ${minimum} and ${maximum}` })
}

/** 401: no API key, or none that is valid. Says the same whatever was wrong with it. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()(
  "Unauthorized",
  { detail: Schema.String },
  { httpApiStatus: 401 }
) {
  static readonly error = new Unauthorized({ detail: "The API key is missing or invalid" })
}

/** 404: no such record in the key's organization, whether or not another organization has it. */
export class RecordNotFound extends Schema.TaggedError<RecordNotFound>()(
  "RecordNotFound",
  { detail: Schema.String },
  { httpApiStatus: 404 }
) {
  static readonly error = new RecordNotFound({ detail: "No such record" })
}

/** 413: the body is larger than the endpoint reads. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()(
  "PayloadTooLarge",
  { detail: Schema.String },
  { httpApiStatus: 413 }
) {}

/** 415: the body is compressed, or encoded in some other way. */
export class EncodingUnsupported extends Schema.TaggedError<EncodingUnsupported>()(
  "EncodingUnsupported",
  { detail: Schema.String },
  { httpApiStatus: 415 }
) {
  static readonly error = new EncodingUnsupported({ detail: "Content-Encoding should be identity" })
}

/** 422: the request does not have the shape that the endpoint takes. */
export class RequestInvalid extends Schema.TaggedError<RequestInvalid>()(
  "RequestInvalid",
  { detail: Schema.Array(ValidationError) },
  { httpApiStatus: 422 }
) {}

/** 429: more requests of one organization than it may send. */
export class TooManyRequests extends Schema.TaggedError<TooManyRequests>()(
  "TooManyRequests",
  { detail: Schema.String },
  { httpApiStatus: 429 }
) {
  static readonly error = new TooManyRequests({ detail: "The organization sends too many requests" })
}

/** 503: something that the answer depends on cannot be reached, or has no time. */
export class Unavailable extends Schema.TaggedError<Unavailable>()(
  "Unavailable",
  { detail: Schema.String, retryAfter: Schema.optionalKey(Schema.Int) },
  { httpApiStatus: 503 }
) {
  /** The store of API keys. Never reported as 401. */
  static readonly credentials = new Unavailable({ detail: "The credential store cannot be reached" })

  /** The store of API keys has no time. */
  static readonly credentialsBusy = new Unavailable({ detail: "The credential store is busy" })

  /** The store of records. */
  static readonly records = new Unavailable({ detail: "The record store cannot be reached" })

  /** The store of records has no time. */
  static readonly recordsBusy = new Unavailable({ detail: "The record store is busy" })

  /** The service itself, which reads as many large bodies as it can hold. */
  static readonly busy = new Unavailable({ detail: "The service is reading too many large requests" })

  /** The payment processor. */
  static readonly processor = new Unavailable({ detail: "The payment processor cannot be reached" })

  /** The payment processor, which the service has no key of. */
  static readonly processorNotConfigured = new Unavailable({ detail: "The payment processor is not configured" })

  /** As many reads of the payment processor as the organization may have are under way. */
  static readonly processorBusy = new Unavailable({
    detail: "Too many reads of the payment processor are in flight"
  })

  /** The same, to be tried again after a while: in whole seconds, at least 1 and at most 60. */
  after(duration: Duration.Duration): Unavailable {
    const seconds = Math.ceil(Duration.toSeconds(duration))
    return new Unavailable({ detail: this.detail, retryAfter: Math.min(Math.max(seconds, 1), 60) })
  }
}

const statusOf = SchemaAST.resolveAt<number>("httpApiStatus")

type DetailError<Self> = Schema.Top & { readonly Type: Self } & (new (props: { readonly detail: string }) => Self)

/** The answer of an error: its status and `{ detail }`, and nothing of the error's inner structure. */
export const answer = <Self extends { readonly detail: string }, S extends DetailError<Self>>(
  error: S & DetailError<Self>
) =>
  ErrorDetail.pipe(
    Schema.decodeTo(
      Schema.toType(error),
      SchemaTransformation.transform({
        decode: ({ detail }) => new error({ detail }),
        encode: ({ detail }) => ({ detail })
      })
    )
  )

/** As `answer`, with a header of a fixed value. */
export const answerWithHeader = <
  Self extends { readonly detail: string },
  S extends DetailError<Self>,
  const Name extends string,
  const Value extends string
>(
  error: S & DetailError<Self>,
  name: Name,
  value: Value
) =>
  Schema.toType(error).pipe(
    HttpApiSchema.encodeToWithHeaders(
      { body: ErrorDetail.pipe(HttpApiSchema.status(statusOf(error.ast) ?? 500)), headers: { [name]: Schema.String } },
      {
        decode: ({ body }) => new error({ detail: body.detail }),
        encode: ({ detail }) => ({ body: { detail }, headers: { [name]: value } })
      }
    )
  )

/** The answer of a 503: `Retry-After` is in seconds, 1 where nothing else is known. */
export const answerUnavailable = Schema.toType(Unavailable).pipe(
  HttpApiSchema.encodeToWithHeaders(
    {
      body: ErrorDetail.pipe(HttpApiSchema.status(statusOf(Unavailable.ast) ?? 500)),
      headers: {
        "retry-after": Schema.Int.annotate({ description: "After how many seconds to try again." })
      }
    },
    {
      decode: ({ body, headers }) => new Unavailable({ detail: body.detail, retryAfter: headers["retry-after"] }),
      encode: ({ detail, retryAfter = 1 }) => ({ body: { detail }, headers: { "retry-after": retryAfter } })
    }
  )
)

/** The answer of a 422. */
export const answerInvalid = HTTPValidationError.pipe(
  Schema.decodeTo(
    Schema.toType(RequestInvalid),
    SchemaTransformation.transform({
      decode: ({ detail }) => new RequestInvalid({ detail }),
      encode: ({ detail }) => ({ detail })
    })
  )
)
