/** The intake in this process: its routes over services of a test's choice, and deliveries to it. */
import { Layer } from "effect"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import { IntakeSecrets } from "../../../src/intake/Signatures.ts"
import * as MemoryScheduler from "../../../src/deletions/MemoryScheduler.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as Server from "../../../src/app/Server.ts"
import { InProcess, send, type Sent } from "../inProcess.ts"
import { delay } from "./tasks.ts"

/** In memory, without any signing secret. */
export const layerMemory = Layer.mergeAll(
  MemoryScheduler.layer(delay),
  IntakeSecrets.layerMemory(),
  HealthChecks.layerMemory
)

/** The routes of the intake and of health over services. */
export const layerIntake = <E>(services: Layer.Layer<Scheduler | IntakeSecrets | HealthChecks, E>) =>
  InProcess.layerOf(
    Layer.provide(Layer.mergeAll(Server.intakeRoutes(delay), Server.operationsRoutes, Server.middleware), services)
  )

export const path = "/api/v1/invoice-deletions"

/** What is sent when a test does not say. */
export const deletions = { invoices: [{ invoice_id: "i1", clinic_id: "c1", client_id: "k1" }] }

let sent = 0

/** A key that no test has used. */
export const newKey = () => `key-${++sent}`

/** Delivers: what differs from a well-formed delivery with a new key. */
export const deliver = (delivery: Sent = {}) =>
  send({
    path,
    json: deletions,
    ...delivery,
    headers: {
      authorization: undefined,
      "idempotency-key": newKey(),
      "x-organization-id": "org_a",
      ...delivery.headers
    }
  })
