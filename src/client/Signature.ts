/** Signs deliveries as Standard Webhooks describes, with the Web Crypto of any runtime. */

/** The bytes of a signing secret. Throws where it is none, without showing it. */
export const keyOf = (secret: string): Uint8Array<ArrayBuffer> => {
  const text = secret.replace(/^whsec_/, "")
  if (text === "" || !/^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/.test(text)) {
    throw new TypeError("secret must be whsec_ and base64")
  }
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** The headers that sign a body now. */
export const signed = async (
  key: Uint8Array<ArrayBuffer>,
  id: string,
  body: string
): Promise<Readonly<Record<string, string>>> => {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"])
  const content = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", imported, content))
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${btoa(String.fromCharCode(...signature))}`
  }
}
