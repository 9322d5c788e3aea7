/**
 * The file system of an image, made without a container engine: the stages of a Dockerfile are folders, in which each
 * COPY and RUN is carried out. Absolute paths are below the folder.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Data, Effect, Schema } from "effect"
import { npmEnvironment, succeed } from "./run.ts"

/** The Dockerfile says what cannot be carried out here. */
export class Unknown extends Data.TaggedError("Unknown")<{ readonly instruction: string }> {}

/** What is left of a Dockerfile: a folder, and how to start what is in it. */
export interface Image {
  /** The folder that stands for `/`. */
  readonly root: string
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly command: ReadonlyArray<string>
  readonly healthcheck: ReadonlyArray<string>
}

const isRoot = process.getuid?.() === 0

/** A user of the image, where the tests may become it. */
export const userOf = ({ user }: Image) => {
  const [uid = 0, gid = 0] = user.split(":").map(Number)
  return isRoot ? { uid, gid } : undefined
}

const decodeExecForm = Schema.decodeEffect(Schema.fromJsonString(Schema.Array(Schema.String)))

/** The instructions of a Dockerfile, with the lines of each joined. */
const instructionsOf = (dockerfile: string) =>
  dockerfile
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [name = "", ...rest] = line.split(" ")
      return { name, value: rest.join(" "), line }
    })

/** What of the context `.dockerignore` lets through: all of it is ignored, but for these names at its top. */
const contextOf = (folder: string): ReadonlySet<string> => {
  const [first, ...rest] = readFileSync(join(folder, ".dockerignore"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
  return new Set(first === "*" ? rest.map((line) => line.replace(/^!/, "")) : [])
}

const temporaryRoot = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync(join(tmpdir(), "practice-data-image-"))
    chmodSync(root, 0o755)
    return root
  }),
  (root) =>
    Effect.sync(() => {
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    })
)

const copy = (from: string, to: string) => {
  const target = to.endsWith("/") ? join(to, from.split("/").at(-1) ?? "") : to
  cpSync(from, target, { recursive: true })
}

/** Carries out a Dockerfile. The folders go away with the scope. */
export const build = Effect.fnUntraced(function* (dockerfile: string, context: string) {
  const allowed = contextOf(context)
  const stages = new Map<string, string>()
  let image: Image = { root: "", workdir: "/", env: {}, user: "0:0", command: [], healthcheck: [] }
  for (const { line, name, value } of instructionsOf(readFileSync(dockerfile, "utf8"))) {
    const unknown = new Unknown({ instruction: line })
    const inImage = (path: string) => join(image.root, resolve(image.workdir, path)) + (path.endsWith("/") ? "/" : "")
    switch (name) {
      case "FROM": {
        const [, stage] = /^node:[\d.]+-trixie-slim(?: AS (\w+))?$/.exec(value) ?? (yield* unknown)
        image = { root: yield* temporaryRoot, workdir: "/", env: {}, user: "0:0", command: [], healthcheck: [] }
        if (stage !== undefined) stages.set(stage, image.root)
        break
      }
      case "WORKDIR":
        image = { ...image, workdir: value }
        mkdirSync(inImage("."), { recursive: true })
        break
      case "ENV":
        image = {
          ...image,
          env: { ...image.env, ...Object.fromEntries(value.split(" ").map((pair) => pair.split("="))) }
        }
        break
      case "COPY": {
        const [, stage, names = ""] = /^(?:--from=(\w+) )?(.+)$/.exec(value) ?? (yield* unknown)
        const paths = names.split(" ")
        const to = inImage(paths.at(-1) ?? "")
        for (const path of paths.slice(0, -1)) {
          if (stage === undefined && !allowed.has(path)) return yield* unknown
          const from = stage === undefined ? context : (stages.get(stage) ?? (yield* unknown))
          if (!existsSync(join(from, path))) return yield* unknown
          copy(join(from, path), to)
        }
        break
      }
      case "RUN": {
        const { root } = image
        const here = value.replaceAll(/(?<= )\/(?=\w)/g, `${root}/`)
        yield* succeed("sh", ["-c", isRoot ? here : here.replace(/-o \d+ -g \d+ /, "")], {
          cwd: inImage("."),
          env: { ...(yield* npmEnvironment), ...image.env }
        })
        break
      }
      case "USER":
        image = { ...image, user: value }
        break
      case "CMD":
        image = { ...image, command: yield* decodeExecForm(value) }
        break
      case "HEALTHCHECK": {
        const [, command = ""] = /^(?:--\S+ )*CMD (.+)$/.exec(value) ?? (yield* unknown)
        image = { ...image, healthcheck: yield* decodeExecForm(command) }
        break
      }
      case "EXPOSE":
      case "VOLUME":
        break
      default:
        return yield* unknown
    }
  }
  return image
})
