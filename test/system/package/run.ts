/** Runs a command of another program to its end. */
import { execFile } from "node:child_process"
import { Config, Data, Effect, Option } from "effect"

/** How a command ended. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command that was expected to succeed did not. */
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
  /** Beside these, a command has no variables. */
  readonly env: Readonly<Record<string, string>>
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
}

/** Runs a command, for five minutes at most. */
export const run = (file: string, args: ReadonlyArray<string>, { cwd, env, user }: Options) =>
  Effect.callback<Ended>((resume) => {
    const child = execFile(
      file,
      args,
      { cwd, env, ...user, timeout: 300_000, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) =>
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

/** The variables that say how the registry is reached: the authority of a network's own certificates, and proxies. */
const ofNetwork = [
  "NODE_EXTRA_CA_CERTS",
  "HTTPS_PROXY",
  "HTTP_PROXY",
  "NO_PROXY",
  "https_proxy",
  "http_proxy",
  "no_proxy"
] as const

/** What npm needs of the environment. It takes what was downloaded before from its cache. */
export const npmEnvironment = Effect.gen(function* () {
  const given = yield* Effect.forEach(ofNetwork, (name) =>
    Effect.map(Config.option(Config.NonEmptyString(name)), (value) =>
      Option.isSome(value) ? [[name, value.value] as const] : []
    )
  )
  return {
    PATH: yield* Config.String("PATH"),
    HOME: yield* Config.String("HOME"),
    ...Object.fromEntries(given.flat()),
    npm_config_prefer_offline: "true",
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_fetch_retries: "1"
  }
})

const isOffline = (output: string) => /E(NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN)/.test(output)

/** Runs npm, which downloads what it has not downloaded before. */
export const npm = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  cwd: string,
  env: Readonly<Record<string, string>> = {}
) {
  return yield* succeed("npm", args, { cwd, env: { ...(yield* npmEnvironment), ...env } }).pipe(
    Effect.mapError(({ command, output }) => {
      const reason = isOffline(output) ? "This test installs packages, and npm does not reach its registry.\n" : ""
      return new CommandFailed({ command, output: reason + output })
    })
  )
})
