/** The thread of `LargeBodies`. A job makes way for those of more important senders while it runs. */
import { parentPort, receiveMessageOnPort } from "node:worker_threads"
import { prune, type Pruned, type Wanted } from "./JsonPruning.ts"

export interface Job {
  readonly id: number
  /** The most important sender has the lowest. */
  readonly rank: number
  readonly body: Uint8Array<ArrayBuffer>
  readonly wanted: Wanted
}

export interface Answer {
  readonly id: number
  readonly pruned: Pruned
}

const decoder = new TextDecoder()
const waiting: Array<Job> = []

const next = (rank: number) => {
  for (
    let got = parentPort && receiveMessageOnPort(parentPort);
    got;
    got = parentPort && receiveMessageOnPort(parentPort)
  )
    waiting.push(got.message)
  const index = waiting.findIndex((job) => job.rank < rank)
  return index < 0 ? undefined : waiting.splice(index, 1)[0]
}

/** Runs the jobs that are more important than a rank. */
const runBefore = (rank: number) => {
  for (let job = next(rank); job !== undefined; job = next(rank)) {
    const { body, id, rank: own, wanted } = job
    const text = decoder.decode(body)
    body.buffer.transfer(0)
    const pruned = prune(text, wanted, () => runBefore(own))
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    parentPort?.postMessage({ id, pruned } satisfies Answer)
  }
}

parentPort?.on("message", (job: Job) => {
  waiting.push(job)
  runBefore(Infinity)
})
