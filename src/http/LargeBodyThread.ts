/** The thread of `LargeBodies`. */
import { parentPort } from "node:worker_threads"
import type { Message } from "./LargeBodies.ts"

// A job that throws ends the thread.
parentPort?.on("message", ({ input, module }: Message) => {
  void import(module).then(({ job }: { readonly job: (input: unknown) => unknown }) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    parentPort?.postMessage(job(input))
  })
})
