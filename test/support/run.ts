/** Runs a command of another program to its end. */
import { execFile } from "node:child_process"
import { Data, Effect } from "effect"

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command that was expected to succeed failed. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly command: string
  readonly output: string
}> {
  override get message() {
    return `${this.command}\n${this.output}`
  }
}

export interface Options {
  readonly cwd: string
  /** All variables that the command has. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The milliseconds after which it is killed; five minutes by default. */
  readonly timeout?: number
  readonly uid?: number
  readonly gid?: number
}

/** Runs a command to its end. */
export const run = (file: string, args: ReadonlyArray<string>, options: Options) =>
  Effect.callback<Ended>((resume) => {
    const bounds = { timeout: 300_000, killSignal: "SIGKILL", maxBuffer: 64 * 1024 * 1024 } as const
    const child = execFile(file, args, { ...bounds, ...options }, (error, stdout, stderr) =>
      resume(Effect.succeed({ code: child.exitCode ?? -1, stdout, stderr: stderr || (error?.message ?? "") }))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Runs a command that is expected to succeed. */
export const succeed = (file: string, args: ReadonlyArray<string>, options: Options) =>
  Effect.filterOrElse(
    run(file, args, options),
    ({ code }) => code === 0,
    ({ stdout, stderr }) => new CommandFailed({ command: [file, ...args].join(" "), output: stdout + stderr })
  )
