/** Live reads over a processor of a test's choice. */
import { Clock, Effect, Layer } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import type { PspKind } from "../../../src/api/Psp.ts"
import {
  type Accounts,
  memory,
  type Page,
  type PageRequest,
  PspClient,
  type PspError
} from "../../../src/psp/PspClient.ts"
import { PspReads } from "../../../src/psp/PspReads.ts"
import { layerPsp } from "../../support/inProcess.ts"

/** A call of the processor. `at` is in milliseconds. */
export interface Call {
  readonly at: number
  readonly kind: PspKind
  readonly account: string
  readonly page: PageRequest
}

export type Answer = Effect.Effect<Page, PspError>

/** A client that records its calls. */
const recording = (list: (count: number, call: Call) => Answer) => {
  const calls: Array<Call> = []
  const layer = Layer.succeed(
    PspClient,
    PspClient.of({
      list: (kind, account, page) =>
        Effect.flatMap(Clock.currentTimeMillis, (at) => {
          const call = { at, kind, account, page }
          return list(calls.push(call), call)
        })
    })
  )
  return { calls, layer }
}

/** The fake of the processor, and its calls. */
export const recorded = (accounts: Accounts) => {
  const { list } = memory(accounts)
  return recording((_, { kind, account, page }) => list(kind, account, page))
}

export const organization = "org_oak"
export const clinic = "clinic_oak"

/** A read of the clinic by an organization. */
export const readBy = (of: string) =>
  Effect.flatMap(PspReads, ({ read }) => read("charges", clinic, { limit: 3 })).pipe(
    Effect.provideService(CurrentOrganization, CurrentOrganization.known(of))
  )

/** Reads of a clinic over a processor with these answers, one after the other, the last again and again; and its calls. */
export const readsOver = Effect.fnUntraced(function* (...answers: ReadonlyArray<Answer>) {
  const { calls, layer } = recording((count) => answers[Math.min(count, answers.length) - 1] ?? Effect.never)
  const clinics = [organization, "org_elm"].map((of) => ({ organization: of, clinic, account: "acct_oak" }))
  const reads = yield* Effect.provide(PspReads, layerPsp(layer, clinics))
  const readOf = (of: string) => Effect.provideService(readBy(of), PspReads, reads)
  return { calls, read: readOf(organization), readOf }
})
