/** The documentation of signatures. Its examples run as they are. */

const curl = `
id=$(openssl rand -hex 16)
timestamp=$(date +%s)
body='{"invoices":[{"invoice_id":"invoice_1"}]}'
key=$(printf %s "\${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf %s "$id.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

curl -sS "$INTAKE/invoice-deletions" --data-raw "$body" -H 'Content-Type: application/json' \\
  -H "X-Organization-Id: $ORGANIZATION" -H "Idempotency-Key: $id" \\
  -H "webhook-id: $id" -H "webhook-timestamp: $timestamp" -H "webhook-signature: v1,$signature"
`.trim()

const python = `
import base64, hmac, json, os, time, urllib.request, uuid

id = str(uuid.uuid4())
timestamp = str(int(time.time()))
body = json.dumps({"invoices": [{"invoice_id": "invoice_1"}]}).encode()
key = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
signature = base64.b64encode(hmac.digest(key, f"{id}.{timestamp}.".encode() + body, "sha256")).decode()

request = urllib.request.Request(os.environ["INTAKE"] + "/invoice-deletions", body, {
    "Content-Type": "application/json",
    "X-Organization-Id": os.environ["ORGANIZATION"],
    "Idempotency-Key": id,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": "v1," + signature,
})
print(urllib.request.urlopen(request, timeout=10).read().decode())
`.trim()

const block = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\``

/** Markdown. Each example takes \`INTAKE\`, \`ORGANIZATION\` and \`SECRET\` from the environment. */
export const signing = `
## Sign a delivery

If the organization has a signing secret, sign its deliveries as [Standard Webhooks](https://www.standardwebhooks.com) describes:

1. \`webhook-id\` is the Idempotency-Key, and \`webhook-timestamp\` the time of sending in seconds since 1970. It may be 300 seconds off.
2. The key is the part of the secret behind \`whsec_\`, decoded from base64: bytes, not text.
3. The signature is the HMAC-SHA256 of \`webhook-id\`, a dot, \`webhook-timestamp\`, a dot and the body, byte for byte as it is sent.
4. \`webhook-signature\` is \`v1,\` and the signature in base64. During a rotation there may be several, separated by spaces; one valid one is enough.

A retry keeps the Idempotency-Key and the body, and has a new time and signature. A 401 names the header that is wrong.

The examples run as they are, with the address of this API, the organization and its secret in the environment:

${block("sh", "export INTAKE=https://practice-data.example/api/v1 ORGANIZATION=org_1 SECRET=whsec_...")}

With curl and openssl, to try it (while openssl runs, others on the machine can see its arguments, and so the key):

${block("sh", curl)}

With Python, 3.9 or later:

${block("python", python)}

With JavaScript, \`InvoiceDeletions\` of \`practice-data/client\` signs and retries.
`.trim()
