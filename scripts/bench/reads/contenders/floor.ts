/** The least that a server in Node can do: it reads the body and sends the bytes of a file, whatever was asked. */
import { readFileSync } from "node:fs"
import { createServer } from "node:http"

const bytes = readFileSync(process.env["FLOOR_FILE"] ?? "")

const server = createServer((request, response) => {
  request.resume().once("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length }).end(bytes)
  })
})

server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  console.log(`Listening on http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`)
})
process.once("SIGTERM", () => {
  server.close()
  server.closeIdleConnections()
})
