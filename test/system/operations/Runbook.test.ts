/**
 * Commands of the documents as they stand there: of the runbook for backup, restore and rotation, and of the README for
 * production, from an empty Postgres to a synced copy.
 *
 * @module-tag long
 */
import { readdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Config, Effect, type Scope } from "effect"
import { migrate } from "../../../src/database/Migrations.ts"
import { loadDemoData } from "../../../src/app/demo/Load.ts"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import * as Tools from "../../support/Tools.ts"
import { clientOf, emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { snippetsOf } from "../../support/snippets.ts"
import { run, succeed } from "../../support/run.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"

const cli = `${join(Process.root, "node_modules/.bin/node")} ${join(Process.root, "src/cli.ts")}`

const blocks = snippetsOf("src/operations/RUNBOOK.md").filter(({ language }) => language === "sh")

/** The block of the runbook that begins with a text. */
const blockOf = (beginning: string) => {
  const block = blocks.find(({ code }) => code.startsWith(beginning))
  assert.isDefined(block, beginning)
  return block.code.replaceAll("npm run cli --", cli)
}

const psql = 'psql --dbname="$DATABASE_URL" --command='

/** Runs commands in a folder, with the programs of Postgres. */
const shell = Effect.fnUntraced(function* (commands: string, cwd: string, env: Readonly<Record<string, string>>) {
  const PATH = `${join(Tools.binaries ?? "", "bin")}:${yield* Config.String("PATH")}`
  return yield* succeed("sh", ["-ec", commands], { cwd, env: { PATH, ...env } })
})

/** A new Postgres of the version that the machine has tools of. */
const cluster = LocalPostgres.make({ binaries: Tools.binaries ?? "", settings: { fsync: "off" } })

/** One with the demo data. */
const filled = Effect.gen(function* () {
  const { url } = yield* cluster
  const sql = yield* clientOf(url)
  yield* migrate(sql)
  yield* loadDemoData(sql)
  return url
})

/** Checks that a service responds to a search. */
const responds = Effect.fnUntraced(function* ({ address }: Process.Process) {
  const { ask } = Client.patient(yield* Client.make(yield* address))
  assert.strictEqual((yield* ask("/charges/search")).status, 200)
}, Effect.scoped)

const chargesOf = (url: string) =>
  Effect.flatMap(clientOf(url), (sql) => sql`select count(*)::integer as n from charges`).pipe(Effect.scoped)

/** A test of commands in a folder of its own, over a Postgres with the demo data. */
const rehearse = <E>(what: string, steps: (url: string, cwd: string) => Effect.Effect<void, E, Scope.Scope>) =>
  it.live.skipIf(Tools.binaries === undefined)(Tools.named(`the runbook's commands ${what}`), () =>
    Effect.flatMap(Effect.all([filled, Process.temporaryFolder]), ([url, cwd]) => steps(url, cwd))
  )

rehearse(
  "back up, and restore into a new cluster, which serves",
  Effect.fnUntraced(function* (url, cwd) {
    yield* shell(blockOf("pg_dumpall"), cwd, { DATABASE_URL: url })
    const fresh = yield* cluster
    const { stdout } = yield* shell(blockOf('psql --dbname="$NEW'), cwd, { NEW_DATABASE_URL: fresh.url })
    assert.notMatch(stdout, /failed/)
    assert.deepStrictEqual(yield* chargesOf(fresh.url), yield* chargesOf(url))
    yield* responds(yield* Process.start({ DATABASE_URL: fresh.url }))
  })
)

rehearse(
  "give the service a new login, and take the old one away",
  Effect.fnUntraced(function* (url, cwd) {
    const [create = "", drop = ""] = blockOf(`${psql}"create role`).split("\n")
    const login = (username: string, password: string) => Object.assign(new URL(url), { username, password }).href
    const env = { DATABASE_URL: url }
    yield* shell(create.replace("service_2", "service_1"), cwd, { ...env, NEW_PASSWORD: "first" })
    const old = yield* Process.start({ DATABASE_URL: login("service_1", "first") })
    yield* responds(old)
    yield* shell(create, cwd, { ...env, NEW_PASSWORD: "second" })
    const next = yield* Process.start({ DATABASE_URL: login("service_2", "second") })
    yield* responds(next)
    yield* old.kill("SIGTERM")
    yield* old.ended
    yield* shell(drop, cwd, env)
    yield* responds(next)
    const PATH = yield* Config.String("PATH")
    const refused = yield* run("psql", [login("service_1", "first"), "--command=select 1"], { cwd, env: { PATH } })
    assert.notStrictEqual(refused.code, 0)
  })
)

it.live("The README's commands lead from an empty Postgres to a synced copy", () =>
  Effect.gen(function* () {
    const url = yield* emptyDatabase
    const port = String(yield* LocalPostgres.freePort)
    const cwd = yield* Process.temporaryFolder
    for (const name of ["package.json", "node_modules", "src"]) symlinkSync(join(Process.root, name), join(cwd, name))
    const section = snippetsOf("README.md").find(({ code }) => code.startsWith("export DATABASE_URL="))
    const commands = (section?.code ?? "").replace(/postgres:\S+/, url).replaceAll("3000", port)
    const variables = { HOME: cwd, PORT: port, PRACTICE_DATA_URL: `http://127.0.0.1:${port}` }
    const { stdout } = yield* succeed("bash", ["-ec", `trap 'kill $! || true; wait || true' EXIT\n${commands}`], {
      cwd,
      env: { PATH: yield* Config.String("PATH"), ...variables }
    })
    assert.include(stdout, "Created org_1")
    assert.include(readdirSync(cwd), "org_1.db")
    const copy = new DatabaseSync(join(cwd, "org_1.db"), { readOnly: true })
    const [organization, ...others] = copy.prepare("select id, name from organizations").all()
    assert.deepStrictEqual([{ ...organization }, others], [{ id: "org_1", name: "Happy Paws" }, []])
    copy.close()
  }).pipe(Effect.provide(TestDatabase.layer))
)
