/** The package as others get it: packed, installed into two projects, and served. */
import { cpSync, mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, Schema } from "effect"
import { startCommand, temporaryFolder } from "../../support/Process.ts"
import { usedFolder } from "../../support/Program.ts"
import { succeed } from "../../support/run.ts"
import product from "../../../package.json" with { type: "json" }

export const root = join(import.meta.dirname, "../../..")

/** The Node of the tests, as npm installs it. */
export const node24 = join(root, "node_modules/node/bin/node")

const oldestVersion = product.engines.node.slice(2)

/** What npm needs of the environment: programs, its cache, and how the registry is reached. */
export const npmEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    /^(PATH|HOME|NODE_EXTRA_CA_CERTS|(https?|no)_proxy)$/i.test(name) && value !== undefined ? [[name, value]] : []
  )
)

/** Runs npm, which downloads what it has not downloaded before. */
export const npm = (args: ReadonlyArray<string>, cwd: string, env: Readonly<Record<string, string>> = {}) => {
  const options = ["--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries=1"]
  return succeed("npm", [...args, ...options], { cwd, env: { ...npmEnvironment, ...env } })
}

const Packed = Schema.fromJsonString(
  Schema.Tuple([
    Schema.Struct({
      filename: Schema.String,
      unpackedSize: Schema.Int,
      files: Schema.Array(Schema.Struct({ path: Schema.String }))
    })
  ])
)

/** Installs packages into a new project. */
export const install = (folder: string, ...packages: ReadonlyArray<string>) => {
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), `{ "private": true, "type": "module" }\n`)
  return npm(["install", "--ignore-scripts", ...packages], folder)
}

/** The command of the package in a project. */
export const binOf = (project: string) => join(project, "node_modules/practice-data/dist/cli.js")

const make = Effect.gen(function* () {
  const folder = realpathSync(yield* temporaryFolder)
  const { stdout } = yield* npm(["pack", "--json", "--silent", "--pack-destination", folder], root)
  const [packed] = yield* Schema.decodeEffect(Packed)(stdout)
  const tarball = join(folder, packed.filename)
  const [bare, whole] = [join(folder, "bare"), join(folder, "whole")]
  const oldNode = `node-${process.platform}-${process.arch}`
  const others = [
    `effect@${product.dependencies.effect}`,
    `@effect/platform-node@${product.dependencies["@effect/platform-node"]}`,
    // Those of the oldest Node, which lack what newer ones have.
    `@types/node@${/^\d+/.exec(oldestVersion)?.[0]}`,
    "typescript@5.9.3",
    // Those that the documents use.
    "openapi-fetch@0.17.0",
    "openapi-typescript@7.13.0",
    `${oldNode}@${oldestVersion}`
  ]
  const [used] = yield* Effect.all([usedFolder, install(bare, tarball), install(whole, tarball, ...others)], {
    concurrency: "unbounded"
  })
  cpSync(join(import.meta.dirname, "project"), whole, { recursive: true })
  /** Starts the installed service. */
  const serve = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
    const program = yield* startCommand({ file: node24, args: [binOf(bare), "serve"], cwd: bare }, environment)
    return { ...program, url: yield* program.address }
  })
  const { url } = yield* serve({ DATA_DIR: join(used, ".data") })
  const types = [`${url}/api/v3/openapi.json`, "--output", "practice-data.d.ts"]
  yield* succeed(node24, ["node_modules/openapi-typescript/bin/cli.js", ...types], { cwd: whole, env: {} })
  return {
    /** A folder for the test's own. */
    folder,
    packed,
    /** A project that has nothing but the package. */
    bare,
    /** A project that has an `effect` and a compiler of its own, and the files of `project`. */
    whole,
    /** The oldest Node that the package runs on. */
    oldest: join(whole, "node_modules", oldNode, "bin/node"),
    serve,
    /** The address of the installed service with the demo data. */
    url
  }
})

export class Project extends Context.Service<Project, Effect.Success<typeof make>>()(
  "practice-data/test/system/package/Project"
) {
  static readonly layer = Layer.effect(Project, make)
}
