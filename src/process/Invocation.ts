/** How the command line is called, for what tells a user what to run next. */
import { extname } from "node:path"

const fromSource = extname(import.meta.filename) === ".ts"

/** The text of a command: from a clone, npm runs it. */
export const invocation = (command: string) => (fromSource ? `npm run cli -- ${command}` : `practice-data ${command}`)
