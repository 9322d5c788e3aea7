/** Live reads over a processor of a test's choice. */
import { Clock, Effect, Layer } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import type { PspKind } from "../../../src/api/Psp.ts"
import { memory, PspClient } from "../../../src/psp/PspClient.ts"
import type { Page, PageRequest, PspError } from "../../../src/psp/PspPage.ts"
import { PspReads } from "../../../src/psp/PspReads.ts"
import { layerPsp } from "../../http/inProcess.ts"
import type { Collections } from "../../support/stripe/rules.ts"

/** A call that the processor got. */
export interface Call {
  /** Milliseconds on the clock. */
  readonly at: number
  readonly kind: PspKind
  readonly account: string
  readonly page: PageRequest
}

/** An answer of the processor. */
export type Answer = Effect.Effect<Page, PspError>

/** A client that notes its calls. */
const noting = (list: (calls: ReadonlyArray<Call>, call: Call) => Answer) => {
  const calls: Array<Call> = []
  const layer = Layer.succeed(
    PspClient,
    PspClient.of({
      list: (kind, account, page) =>
        Effect.gen(function* () {
          const call = { at: yield* Clock.currentTimeMillis, kind, account, page }
          calls.push(call)
          return yield* list(calls, call)
        })
    })
  )
  return { calls, layer }
}

/** A processor that answers its calls one after the other, the last answer again and again; and its calls. */
const scripted = (...answers: ReadonlyArray<Answer>) =>
  noting(({ length }) => answers[Math.min(length, answers.length) - 1] ?? Effect.never)

/** The fake of the processor, and its calls. */
export const recorded = (accounts: Collections) => {
  const { list } = memory(accounts)
  return noting((_, { kind, account, page }) => list(kind, account, page))
}

export const organization = "org_oak"
export const clinic = "clinic_oak"
const account = "acct_oak"

/** Reads over a processor, of a clinic for each account and one that has the account `acct_oak`. */
const readsOf = Effect.fnUntraced(function* (
  { calls, layer }: ReturnType<typeof noting>,
  accounts: ReadonlyArray<string>,
  organizations: ReadonlyArray<string> = [organization]
) {
  const clinics = organizations.flatMap((id) => [
    { organization: id, clinic, account },
    ...accounts.map((other) => ({ organization: id, clinic: other, account: other }))
  ])
  const reads = yield* Effect.provide(PspReads, layerPsp(layer, clinics))
  /** Reads the clinic of an account, for an organization. */
  const readOf = (of: string, by = organization) =>
    reads
      .read("charges", of, { limit: 3 })
      .pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known(by)))
  return { calls, isUp: reads.isUp, readOf, read: readOf(clinic) }
})

/** Live reads of a clinic that has an account, over a processor that answers its calls so, one after the other. */
export const readsOver = (...answers: ReadonlyArray<Answer>) => readsOf(scripted(...answers), [])

/** Live reads of clinics that are called as their accounts are, over a processor that answers each account so. */
export const readsByAccount = (accounts: Readonly<Record<string, Answer>>, organizations?: ReadonlyArray<string>) =>
  readsOf(
    noting((_, call) => new Map(Object.entries(accounts)).get(call.account) ?? Effect.never),
    Object.keys(accounts),
    organizations
  )
