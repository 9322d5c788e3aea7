/** The service, started by the command of the installed package. */
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { startCommand } from "../../support/Process.ts"
import { node24, Project } from "./Project.ts"

/** The command that a project has of the package. */
export const binOf = (project: string) => join(project, "node_modules/practice-data/dist/cli.js")

/** Starts the installed service. */
export const serve = (environment: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { bare } = yield* Project
    const program = yield* startCommand({ file: node24, args: [binOf(bare), "serve"], cwd: bare }, environment)
    return { ...program, url: yield* program.address }
  })

/** The service with the demo data. */
export class DemoService extends Context.Service<DemoService, { readonly url: string }>()(
  "practice-data/test/system/package/Service/DemoService"
) {
  static readonly layer = Layer.effect(DemoService, serve({ DATA_DIR: "memory" }))
}
