/** Certificate authorities for a test, and what they sign, made by `openssl`. */
import { execFileSync, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"

/** True where there is an `openssl`. */
export const canMake = spawnSync("openssl", ["version"]).status === 0

/** Runs a command line without blanks in its words, and other words. */
const openssl = (folder: string, line: string, ...others: ReadonlyArray<string>) =>
  execFileSync("openssl", [...line.split(" "), ...others], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] })

const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"

/** Makes an authority: `NAME.crt` and `NAME.key`. */
export const authority = (folder: string, name: string) => {
  openssl(folder, `req -x509 ${newKey} -days 2 -subj /CN=${name} -keyout ${name}.key -out ${name}.crt`)
  return join(folder, `${name}.crt`)
}

/** Makes a certificate that an authority of the folder has signed: `NAME.crt` and `NAME.key`. */
export const signed = (folder: string, by: string, name: string, host?: string) => {
  openssl(folder, `req ${newKey} -subj /CN=${name} -keyout ${name}.key -out ${name}.csr`)
  writeFileSync(join(folder, `${name}.ext`), host === undefined ? "" : `subjectAltName=DNS:${host}`)
  const authorityFiles = `-CA ${by}.crt -CAkey ${by}.key -CAcreateserial -days 2`
  openssl(folder, `x509 -req ${authorityFiles} -in ${name}.csr -extfile ${name}.ext -out ${name}.crt`)
  return { certificate: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) }
}

/** Encrypts a key: `NAME.encrypted.key`. */
export const encrypted = (folder: string, name: string, password: string) => {
  openssl(folder, `ec -in ${name}.key -aes256 -out ${name}.encrypted.key`, "-passout", `pass:${password}`)
  return join(folder, `${name}.encrypted.key`)
}
