/** The headers and signatures of deliveries, with the secrets that verify them: Standard Webhooks, also by the names of Svix. */
import { createHmac, timingSafeEqual } from "node:crypto"
import { IncomingMessage } from "node:http"
import { Context, DateTime, Duration, Effect, Layer, Record, Redacted, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import { invalidRequest, validationErrors } from "../api/Faults.ts"
import * as Intake from "../api/IntakeApi.ts"
import { decodeRows } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import { inTime, type SchedulerUnavailable } from "../deletions/Scheduler.ts"
import { receivedBody } from "../http/JsonBodyServer.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Logging from "../observability/Logging.ts"

/** The valid secrets, newest first; `unsigned` if there never was one. */
type Signing = ReadonlyArray<Redacted.Redacted> | "unsigned"

const secretRows = decodeRows(Schema.Struct({ secret: Schema.NullOr(Schema.RedactedFromValue(Schema.String)) }))

/**
 * The signing secrets of organizations, for the intake; `keys/SigningSecrets` creates and revokes them. An organization signs
 * from its first secret on, also once all are revoked, until an operator allows unsigned deliveries: that deletes them.
 */
export class IntakeSecrets extends Context.Service<
  IntakeSecrets,
  {
    readonly of: (organization: string) => Effect.Effect<Signing, SchedulerUnavailable>
  }
>()("practice-data/intake/Signatures/IntakeSecrets") {
  /** Secrets in the table `intake_secrets`. */
  static readonly layer = Layer.effect(
    IntakeSecrets,
    Effect.map(TaskDatabase, (sql) =>
      IntakeSecrets.of({
        of: Effect.fn("IntakeSecrets.of")(function* (organization) {
          const inHalfASecond = inTime(sql, `organization ${organization}`, Duration.millis(500))
          const rows = yield* inHalfASecond(
            secretRows(sql`
              select case when revoked_at is null then secret end as secret
              from intake_secrets where organization_id = ${organization} order by created_at desc`)
          )
          return rows.length === 0 ? "unsigned" : rows.flatMap(({ secret }) => secret ?? [])
        })
      })
    )
  )

  /** The fake: secrets by organization. */
  static readonly layerMemory = (secrets: Readonly<Record<string, Signing>> = {}) =>
    Layer.succeed(
      IntakeSecrets,
      IntakeSecrets.of({ of: (organization) => Effect.succeed(secrets[organization] ?? "unsigned") })
    )
}

/** True if an organization without a secret is refused. */
export const SignaturesRequired = Context.Reference<boolean>("practice-data/intake/SignaturesRequired", {
  defaultValue: () => false
})

const decodeHeaders = Schema.decodeUnknownEffect(Intake.DeliveryHeaders, { errors: "all" })

/** The headers of a delivery, or all their faults. A repeated header is an array, which is not a string. */
const signatureHeaders = ({ headers, source }: HttpServerRequest.HttpServerRequest) => {
  const distinct = source instanceof IncomingMessage ? source.headersDistinct : {}
  // Node joins the values of a repeated header.
  const repeated = Record.filter(
    { "idempotency-key": distinct["idempotency-key"], "x-organization-id": distinct["x-organization-id"] },
    (values = []) => values.length > 1
  )
  return Effect.mapError(decodeHeaders({ ...headers, ...repeated }), ({ issue }) =>
    invalidRequest(validationErrors(issue, ["header"]))
  )
}

/** The time of a signature may be this many seconds from now. */
const tolerance = 300

/** The MAC of a content with a secret; undefined where the secret is malformed. */
const computeMac = (secret: Redacted.Redacted, prefix: string, body: Uint8Array) => {
  const text = Redacted.value(secret).replace(/^whsec_/, "")
  const key = Buffer.from(text, "base64")
  if (key.length === 0 || key.toString("base64") !== text) return undefined
  return createHmac("sha256", key).update(prefix).update(body).digest("base64")
}

/**
 * The signatures of a request with its time in seconds, or the reason why they are refused whatever the body. The headers
 * of Svix count only where none of Standard Webhooks is sent.
 */
const readClaim = (headers: Intake.DeliveryHeaders, now: number) => {
  const isSvix = "svix-id" in headers && !Object.keys(headers).some((name) => name.startsWith("webhook-"))
  const set = isSvix ? "svix" : "webhook"
  const names = [`${set}-id`, `${set}-timestamp`, `${set}-signature`] as const
  const [id = "", timestamp = "", signature = ""] = names.map((name) => headers[name])
  if (id === "") return `${set}-id is missing`
  if (id !== headers["idempotency-key"]) return `${set}-id is not the Idempotency-Key`
  if (timestamp === "") return `${set}-timestamp is missing`
  const signedAt = parseInt(timestamp, 10)
  if (Number.isNaN(signedAt)) return `${set}-timestamp is not a number`
  if (signedAt < now - tolerance) return `${set}-timestamp is too old: more than ${tolerance} seconds ago`
  if (signedAt > now + tolerance) return `${set}-timestamp is too new: more than ${tolerance} seconds ahead`
  if (signature.trim() === "") return `${set}-signature is missing`
  const given = signature.split(" ").filter((each) => /^v1,./.test(each))
  if (given.length === 0) return `${set}-signature is malformed: it has no signature of version v1`
  return { prefix: `${id}.${signedAt}.`, given, mismatch: `${set}-signature does not match` }
}

const currentSeconds = Effect.map(DateTime.now, (now) => Math.floor(DateTime.toEpochMillis(now) / 1000))

/** The reason why the signature of a request is refused; undefined where it is good. */
const signatureFault = Effect.fnUntraced(function* (headers: Intake.DeliveryHeaders, secrets: Signing) {
  if (secrets.length === 0) return "all signing secrets of the organization are revoked"
  if (secrets === "unsigned") return "the organization has no signing secret"
  const claim = readClaim(headers, yield* currentSeconds)
  if (typeof claim === "string") return claim
  const bytes = yield* receivedBody
  for (const secret of secrets) {
    const expected = Buffer.from(`v1,${computeMac(secret, claim.prefix, bytes) ?? ""}`)
    const isExpected = (text: Buffer) => text.length === expected.length && timingSafeEqual(text, expected)
    if (claim.given.some((each) => isExpected(Buffer.from(each)))) return undefined
  }
  return claim.mismatch
})

// An organization whose secret is wrong, or a stranger, repeats its deliveries.
const warn = Logging.limitedWarning("A delivery was refused for its signature", 50)

/** The middleware that checks headers and signatures, over `IntakeSecrets`. */
export const signedDelivery = Layer.effect(
  Intake.SignedDelivery,
  Effect.gen(function* () {
    const intakeSecrets = yield* IntakeSecrets
    const isRequired = yield* SignaturesRequired
    return Intake.SignedDelivery.of(
      Effect.fnUntraced(function* (handler) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const headers = yield* signatureHeaders(request)
        const organization = headers["x-organization-id"]
        const idempotencyKey = headers["idempotency-key"]
        yield* note({ organization, idempotencyKey })
        const secrets = yield* Effect.option(intakeSecrets.of(organization))
        if (secrets._tag === "None") {
          return yield* Effect.provideService(handler, Intake.Sender, { verification: "unavailable" })
        }
        const isUnsigned = secrets.value === "unsigned" && !isRequired
        const fault = isUnsigned ? undefined : yield* signatureFault(headers, secrets.value)
        if (fault === undefined) {
          return yield* Effect.provideService(handler, Intake.Sender, { verification: "passed" })
        }
        yield* note({ refusal: "signature", outcome: "unsigned" })
        yield* Effect.annotateLogs(warn(fault), { organization, idempotency_key: idempotencyKey })
        return yield* new Unauthorized({ detail: `The delivery is not signed as required: ${fault}` })
      })
    )
  })
)
