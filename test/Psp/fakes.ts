/** Live reads over a processor of a test's choice. */
import { Clock, Effect, Layer } from "effect"
import { CurrentOrganization } from "../../src/Organization/CurrentOrganization.ts"
import { PspClient } from "../../src/Psp/PspClient.ts"
import type { Kind, Page, PageRequest, PspError } from "../../src/Psp/PspPage.ts"
import * as PspMemory from "../../src/Psp/PspMemory.ts"
import { PspReads } from "../../src/Psp/PspReads.ts"
import { layerPsp } from "../Http/inProcess.ts"
import type { Collections } from "../support/stripe/rules.ts"

/** A call that the processor got. */
export interface Call {
  /** Milliseconds on the clock. */
  readonly at: number
  readonly kind: Kind
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
  const { list } = PspMemory.make(accounts)
  return noting((_, { kind, account, page }) => list(kind, account, page))
}

export const organization = "org_oak"
export const clinic = "clinic_oak"
const clinics = [{ organization, clinic, account: "acct_oak" }]

/** Reads of a clinic that has an account, over a processor that answers so. */
export const readsOver = Effect.fnUntraced(function* (...answers: ReadonlyArray<Answer>) {
  const { calls, layer } = scripted(...answers)
  const reads = yield* Effect.provide(PspReads, layerPsp(layer, clinics))
  return {
    calls,
    isUp: reads.isUp,
    read: reads
      .read("charges", clinic, { limit: 3 })
      .pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization)))
  }
})
