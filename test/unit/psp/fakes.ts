/** Live reads over a processor of a test's choice. */
import { Array, Clock, Effect, Layer } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import type { PspKind, PspObject } from "../../../src/api/Psp.ts"
import * as Psp from "../../../src/psp/PspClient.ts"
import { PspReads } from "../../../src/psp/PspReads.ts"
import { kinds } from "../../support/stripe.ts"

/** Two accounts of a processor. */
export const [oak, harbor] = ["acct_1Oakridge", "acct_1Harbor"]

/** Objects, of which eight are made in the same second, so that pages end in the middle of one. */
const many = (prefix: string, count: number) =>
  Array.makeBy(count, (index): PspObject => ({
    id: `${prefix}_${String(index).padStart(5, "0")}`,
    object: prefix,
    created: 1_767_600_000 + Math.floor(index / 8)
  }))

const ofEach = (prefix: string, count: number) =>
  Object.fromEntries(kinds.map((kind) => [kind, many(`${kind}-${prefix}`, count)]))

export const accounts: Psp.Accounts = {
  [oak]: { ...ofEach("oak", 20), "balance-transactions": many("txn", 250) },
  [harbor]: ofEach("harbor", 3)
}

export type Answer = Effect.Effect<Psp.Page, Psp.PspError>

/** A client, and its calls. `at` is in milliseconds. */
export const recorded = (list: Psp.PspClient["Service"]["list"]) => {
  const calls: Array<{ at: number; kind: PspKind; account: string; page: Psp.PageRequest }> = []
  const layer = Layer.succeed(Psp.PspClient, {
    list: (kind, account, page) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        calls.push({ at, kind, account, page })
        return list(kind, account, page)
      })
  })
  return { calls, layer }
}

export const organization = "org_oak"
export const clinic = "clinic_oak"

/** A read of the clinic by an organization. */
export const readBy = (of: string) =>
  Effect.flatMap(PspReads, ({ read }) => read("charges", clinic, { limit: 3 })).pipe(
    Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: of }))
  )

/** Reads of a clinic over a processor with these answers, one after the other, the last again and again; and its calls. */
export const readsOver = Effect.fnUntraced(function* (...answers: ReadonlyArray<Answer>) {
  const left = [...answers]
  const { calls, layer } = recorded(() => (left.length > 1 ? left.shift() : left[0]) ?? Effect.never)
  const clinics = [organization, "org_elm"].map((of) => ({ organization: of, clinic, account: "acct_oak" }))
  const reads = yield* Effect.provide(PspReads, PspReads.layerMemory(clinics, layer))
  const readOf = (of: string) => Effect.provideService(readBy(of), PspReads, reads)
  return { calls, read: readOf(organization), readOf }
})
