/** The package as others get it: packed, and installed into two projects. */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, Schema } from "effect"
import { snippets } from "./readme.ts"
import { npm } from "./run.ts"

export const root = join(import.meta.dirname, "../../..")

/** The Node that the tests run on, as npm installs it. */
export const node24 = join(root, "node_modules/node/bin/node")

const oldestNode = "22.19.0"

const Packed = Schema.fromJsonString(
  Schema.Tuple([
    Schema.Struct({
      filename: Schema.String,
      unpackedSize: Schema.Int,
      files: Schema.Array(Schema.Struct({ path: Schema.String }))
    })
  ])
)

const install = (folder: string, ...packages: ReadonlyArray<string>) =>
  Effect.andThen(
    Effect.sync(() => {
      mkdirSync(folder)
      writeFileSync(join(folder, "package.json"), `{ "private": true, "type": "module" }\n`)
    }),
    npm(["install", "--ignore-scripts", ...packages], folder)
  )

const make = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "practice-data-package-")))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }))
  )
  const { stdout } = yield* npm(["pack", "--json", "--silent", "--pack-destination", folder], root)
  const [packed] = yield* Schema.decodeEffect(Packed)(stdout)
  const tarball = join(folder, packed.filename)
  const bare = join(folder, "bare")
  const whole = join(folder, "whole")
  const oldNode = `node-${process.platform}-${process.arch}`
  yield* install(bare, tarball)
  yield* install(
    whole,
    tarball,
    "effect@^4.1.0",
    "@effect/platform-node@^4.1.0",
    "@types/node@24.19.2",
    "typescript5@npm:typescript@5.9.3",
    "typescript7@npm:typescript@7.0.2",
    "vitest@5.1.1",
    `${oldNode}@${oldestNode}`
  )
  cpSync(join(import.meta.dirname, "project"), whole, { recursive: true })
  const programs = snippets()
    .filter(({ file, language }) => file === undefined && ["js", "ts"].includes(language))
    .map(({ code, language }, index) => ({ code, name: `document-${index}.${language}` }))
  for (const { code, name } of programs) writeFileSync(join(whole, name), code)
  return {
    folder,
    tarball,
    packed,
    bare,
    whole,
    programs,
    nodes: { [oldestNode]: join(whole, "node_modules", oldNode, "bin/node"), 24: node24 }
  }
})

export class Project extends Context.Service<
  Project,
  {
    /** A folder for the test's own. */
    readonly folder: string
    readonly tarball: string
    readonly packed: (typeof Packed.Type)[0]
    /** A project that has nothing but the package. */
    readonly bare: string
    /** A project that has an `effect` of its own, compilers and vitest, the files of `project`, and the README's. */
    readonly whole: string
    /** The programs in the README, which are files of that project. */
    readonly programs: ReadonlyArray<{ readonly name: string; readonly code: string }>
    /** The oldest Node that the package says it runs on, and the one that the tests run on. */
    readonly nodes: Readonly<Record<string, string>>
  }
>()("practice-data/test/system/package/Project") {
  static readonly layer = Layer.effect(Project, make)
}
