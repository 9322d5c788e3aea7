/** What a strict project sees: the types of records, requests and errors reach it whole. */
import { Effect, Layer } from "effect"
import { HttpApiClient } from "effect/http-api"
import { type Charge, charges, DataApi, Errors, type Records, type Stored } from "practice-data"
import { PracticeData } from "practice-data/client"
import { App, type OrgResolver, Server } from "practice-data/server"
import { build, Repositories, servicesMemory } from "practice-data/testing"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <T extends true>(): T | undefined => undefined

isTrue<Equal<(typeof Charge)["Type"]["outstanding_balance"], number | null>>()
isTrue<Equal<Stored<typeof charges>["pet"], string | null | undefined>>()
isTrue<Equal<Records["charges"][number]["id"], string>>()
isTrue<Equal<(typeof Charge)["Encoded"]["created_at"], string>>()

const client = HttpApiClient.make(DataApi, { baseUrl: "http://127.0.0.1:3000/api/v3" })
type Client = Effect.Success<typeof client>
type Get = ReturnType<Client["charges"]["get"]>
isTrue<Equal<Extract<Effect.Error<Get>, Errors.RecordNotFound>, Errors.RecordNotFound>>()
isTrue<Equal<unknown extends Effect.Error<Get> ? true : false, false>>()

// With declarations, each type that is inferred here has to have a name that the package exports.
export const routes = Server.dataApiHandlers
export const services = routes.pipe(Layer.provide(servicesMemory))
export const whole = [App.databases, App.layer]
isTrue<Equal<Extract<Layer.Services<typeof App.dataApi>, OrgResolver>, OrgResolver>>()
export const repositories = Effect.map(Repositories, (all) => ({ ...all }))

export const wrong = (effectClient: Client) => [
  // @ts-expect-error a filter that charges do not have
  effectClient.charges.search({ payload: { statsu: "open" } }),
  // @ts-expect-error the same, of the client of promises
  PracticeData.make({ baseUrl: "http://127.0.0.1:3000", apiKey: "key" }).charges.search({ statsu: "open" }),
  // @ts-expect-error a field that charges do not have
  build(charges, { statsu: "open" })
]
