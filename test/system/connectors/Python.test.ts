/**
 * The files for Python, run by the python3 of this machine over the service. dlt itself is not here: a stand-in runs its
 * source.
 *
 * @module-tag long
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../../support/Process.ts"
import { succeed } from "../../support/run.ts"
import { options, Service } from "../../support/Service.ts"

const python = "/usr/bin/python3"
const isInstalled = existsSync(python)
if (!isInstalled) process.stderr.write(`There is no ${python}: the tests of the files for Python are left out.\n`)

const connectors = join(import.meta.dirname, "../../../src/connectors")

/** A server that keeps the paths of its requests. `respond(path, write)` responds to them. */
const server = String.raw`
import email.utils, socketserver, threading, time
import practice_data as p
requests = []
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        lines = [line for line in iter(self.rfile.readline, b"\r\n")]
        self.rfile.read(sum(int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")))
        requests.append(lines[0].split()[1].decode())
        respond(requests[-1], self.wfile.write)
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}"
`

/** What a broken service and its proxies respond first, and what the client says of a key and of an order that never holds. */
const broken = `${server}
firsts = {
    "cut": b"HTTP/1.1 200 OK\\r\\nContent-Length: 99\\r\\n\\r\\n{",
    "error-cut": b"HTTP/1.1 503 X\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n20\\r\\n{",
    "none": b"",
    "fraction": b"HTTP/1.1 503 X\\r\\nRetry-After: 1.5\\r\\n\\r\\n",
    "date": f"HTTP/1.1 503 X\\r\\nDate: {email.utils.formatdate(0)}\\r\\nRetry-After: {email.utils.formatdate(2)}\\r\\n\\r\\n".encode(),
}
def respond(path, write):
    gone = b"HTTP/1.1 410 X\\r\\nx-error: cursor_expired\\r\\n\\r\\n"
    ok = b'HTTP/1.1 200 OK\\r\\n\\r\\n{"body": [1]}'
    write(gone if path.endswith("/changes") else firsts.pop(path.split("/")[3], ok))
client = p.PracticeData(f"{url}/api/v3/", "secret\\n", retries=1)
for name in list(firsts):
    began = time.monotonic()
    print(name, client.search(name), int(time.monotonic() - began))
p.time.sleep = lambda seconds: requests.append(seconds > 0)
for attempt in lambda: p.copy(client, "copy.db"), lambda: p.PracticeData("http://a", "sec\\nret"), lambda: p.PracticeData("http://a:secret@b", "a"):
    try:
        attempt()
    except Exception as error:
        print(getattr(error, "code", 0), "secret" in f"{error!r}".replace("\\\\n", ""), requests.count("/api/v3/changes"), requests.count(True))
`

/** What something else than the service responds: the error of each, and the number of requests. */
const foreign = `${server}
answers = {
    "list": b"HTTP/1.1 200 OK\\r\\n\\r\\n[1]",
    "empty": b"HTTP/1.1 200 OK\\r\\n\\r\\n{}",
    "changes": b'HTTP/1.1 200 OK\\r\\n\\r\\n{"cursor": "a", "body": []}',
    "never": b"HTTP/1.1 503 X\\r\\nRetry-After: 9999999999\\r\\n\\r\\n",
    "slow": b"HTTP/1.1 200 OK\\r\\n\\r\\n{",
}
def respond(path, write):
    name = path.split("/")[3]
    write(answers[name])
    try:
        while name == "slow":
            write(b" ")
            time.sleep(0.02)
    except OSError:
        pass
client = p.PracticeData(url, "key", retries=1)
asks = [lambda name=name: client.search(name) for name in ("list", "empty", "never")]
for ask in *asks, lambda: p.copy(client, "copy.db"), lambda: p._post(f"{url}/api/v3/slow", {}, lambda _: {}, timeout=0.05, retries=0):
    requests.clear()
    try:
        ask()
    except p.PracticeDataError as error:
        print(error.status, len(requests), str(error).partition(": ")[2])
`

/** Two copies at once: before the first page of a slow one, another one has applied all. */
const twoCopies = `
import sqlite3, practice_data as p
class Feed:
    pages = {None: "a1", "a1": "a2"}
    def changes(self, cursor):
        while cursor in self.pages:
            cursor = self.pages[cursor]
            record = {"id": cursor[0], "version": cursor[1]}
            yield {"body": [{"resource": "pets", "record": record}], "cursor": cursor, "has_more": cursor in self.pages}
class Slow(Feed):
    def changes(self, cursor):
        p.copy(Feed(), "copy.db")
        yield from super().changes(cursor)
try:
    p.copy(Slow(), "copy.db")
except RuntimeError as error:
    print(error)
print(*sqlite3.connect("copy.db").execute("select record from records").fetchone())`

/** Runs the resource of a source twice, and prints the number of rows and the tables of each run. */
const standIn = `
class current:
    _state = {}
    resource_state = classmethod(lambda cls: cls._state)
def source(**_):
    return lambda function: function
def resource(table_name, **_):
    return lambda function: lambda: [(table_name(row), row) for rows in function() for row in rows]
def pipeline(*_, **__):
    class Pipeline:
        def run(self, resource, **_):
            first, second = resource(), resource()
            numbers = {type(row["price"]).__name__ for table, row in first if table == "subscriptions"}
            return len(first), len({table for table, _ in first}), len(second), *numbers
    return Pipeline()
`

const run = Effect.fnUntraced(function* (folder: string, ...args: ReadonlyArray<string>) {
  const { address } = yield* Service
  const env = {
    PRACTICE_DATA_URL: `${address}/api/v3`,
    PRACTICE_DATA_API_KEY: "pda_demo_oakridge\n",
    PRACTICE_DATA_ORGANIZATION: "org_oakridge",
    PYTHONPATH: `${connectors}:${folder}`,
    PYTHONDONTWRITEBYTECODE: "1"
  }
  const { stdout } = yield* succeed(python, args, { cwd: folder, env })
  return stdout.trim()
})

/** The lines that a program prints, without the space at their ends. */
const printedBy = Effect.fnUntraced(function* (program: string) {
  const env = { PYTHONPATH: connectors, PYTHONDONTWRITEBYTECODE: "1" }
  const { stdout } = yield* succeed(python, ["-c", program], { cwd: yield* temporaryFolder, env })
  return stdout.trim().split(/ *\n/)
})

describe.skipIf(!isInstalled)("With python3", () => {
  test.live("the client retries what was cut, after Retry-After, reads again four times, and shows no key", () =>
    Effect.gen(function* () {
      const [cut, error, none, fraction, date, ...failures] = yield* printedBy(broken)
      assert.deepStrictEqual([cut, error, none], ["cut [1] 0", "error-cut [1] 0", "none [1] 0"])
      assert.match(`${fraction} ${date}`, /^fraction \[1\] [1-9] date \[1\] [2-9]$/)
      assert.deepStrictEqual(failures, ["cursor_expired False 5 4", "0 False 5 4", "0 False 5 4"])
    })
  )

  test.live("the client takes no other service's response, waits for no longer than it says, and ends a slow one", () =>
    Effect.gen(function* () {
      const ends = ["200 1 it has no body", "200 1 it has no body", "503 1", "200 1 it has no has_more"]
      assert.deepStrictEqual(yield* printedBy(foreign), [...ends, "0 1 its body takes more than 0.5 seconds"])
    })
  )

  test.live("a copy is changed by one process at a time", () =>
    Effect.gen(function* () {
      const [refused, copied] = yield* printedBy(twoCopies)
      assert.strictEqual(refused, "Another process changed the copy in copy.db: run only one")
      assert.strictEqual(copied, '{"id": "a", "version": "2"}')
    })
  )

  layer(Service.layerEmbedded, options)("and a running service", (it) => {
    it.effect(
      "the client reads, also for a reader that leaves, copies what has changed since, and sends once for each key",
      () =>
        Effect.gen(function* () {
          const folder = yield* temporaryFolder
          const client = join(connectors, "practice_data.py")
          const read = yield* run(folder, client, "read", "charges", '{"status": "open", "limit": 2}')
          assert.lengthOf(read.split("\n"), 2)
          const left = `
import subprocess, sys
child = subprocess.Popen([sys.executable, "${client}", "read", "charges"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
child.stdout.close()
print(child.stderr.read(), child.wait())`
          assert.strictEqual(yield* run(folder, "-c", left), "b'' 0")
          const live = yield* run(folder, client, "read", "psp-charges", '{"clinic": "clinic_oakridge_01", "limit": 2}')
          assert.match(live, /^\{"id": "ch_.*\n\{"id": "ch_.*$/)
          const first = yield* run(folder, client, "copy", "copy.db")
          assert.match(first, /^\d{3,} changes$/)
          assert.strictEqual(yield* run(folder, client, "copy", "copy.db"), "0 changes")
          const program = `
import sqlite3, practice_data as p, os
url = os.environ["PRACTICE_DATA_URL"]
print(sqlite3.connect("copy.db").execute("select count(*) from records").fetchone()[0])
for _ in range(2):
    print(p.send(url, "org_oakridge", {"invoices": [{"invoice_id": "none"}]}, idempotency_key="python-1")["status"])
try:
    p.PracticeData(url, "pda_demo_oakridge").get("charges", "none")
except p.PracticeDataError as error:
    print(error.status, error.code)
print(p.sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330)
    ["webhook-signature"])`
          const printed = yield* run(folder, "-c", program)
          const [count, ...others] = printed.split("\n")
          assert.strictEqual(`${count} changes`, first)
          // The signature is the example of Standard Webhooks.
          const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
          assert.deepStrictEqual(others, ["scheduled", "duplicate", "404 record_not_found", signature])
        })
    )

    it.effect("the dlt source gives every record once, in a table for each resource, with numbers of one type", () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        mkdirSync(join(folder, "dlt"))
        writeFileSync(join(folder, "dlt/__init__.py"), standIn)
        const printed = yield* run(folder, join(connectors, "dlt_source.py"))
        // Numbers of two types would be two columns.
        const [, first] = /^\((\d+), 15, 0, 'Decimal'\)$/.exec(printed) ?? assert.fail(printed)
        assert.isAbove(Number(first), 100)
      })
    )
  })
})
