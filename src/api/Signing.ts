/** The documentation of signatures. Its example runs as it is. */

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

const block = (code: string) => `\`\`\`sh\n${code}\n\`\`\``

/** Markdown. The example takes \`INTAKE\`, \`ORGANIZATION\` and \`SECRET\` from the environment. */
export const signing = `
## Sign a delivery

If the organization has a signing secret, sign its deliveries as [Standard Webhooks](https://www.standardwebhooks.com) describes:

1. \`webhook-id\` is the Idempotency-Key, and \`webhook-timestamp\` the time of sending in seconds since 1970. It may be 300 seconds off.
2. The key is the part of the secret behind \`whsec_\`, decoded from base64: bytes, not text.
3. The signature is the HMAC-SHA256 of \`webhook-id\`, a dot, \`webhook-timestamp\`, a dot and the body, byte for byte as it is sent.
4. \`webhook-signature\` is \`v1,\` and the signature in base64. During a rotation there may be several, separated by spaces; one valid one is enough.

A retry keeps the Idempotency-Key and the body, and has a new time and signature. A 401 names the header that is wrong.

With curl and openssl, to try it (while openssl runs, others on the machine can see its arguments, and so the key). It runs as it is, with the address of this API, the organization and its secret in the environment:

${block("export INTAKE=https://practice-data.example/api/v1 ORGANIZATION=org_1 SECRET=whsec_...")}

${block(curl)}

In Python, \`send\` of [practice_data.py](docs/connectors) signs and retries; in JavaScript, \`InvoiceDeletions\` of \`practice-data/client\`.
`.trim()
