import process, { env, stderr } from "node:process"
// oxlint-disable-next-line import/no-unassigned-import -- it sets V8, also in the processes of `practice-data serve`
import "./preload.cjs"

// The first process of a container gets no signal that it does not handle, and nothing else does before the imports.
const stop = () => process.exit(143)
if (process.pid === 1) process.on("SIGTERM", stop)

// The imports take a while, and a first start makes a database.
if (!env["DATABASE_URL"]) stderr.write("Starting on the embedded database\n")

const { run } = await import("./app/App.ts")
run()
process.off("SIGTERM", stop)
