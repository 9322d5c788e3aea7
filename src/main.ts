import { env, stderr } from "node:process"
// For the processes of `practice-data serve`, which start here.
import "./requireNode.cjs"

// The imports take a while, and a first start makes a database.
if (!env["DATABASE_URL"]) stderr.write("Starting on the embedded database\n")

const { run } = await import("./app/App.ts")
run()
