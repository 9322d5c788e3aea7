/** What has the form of a secret, in texts that are not of this service. */

const secret = /pda_|whsec_|[sr]k_(?:live|test)_|bearer|basic|:\/\/[^/\s]*@/i

/** Without what has the form of a secret: a last line of defence, for texts that are not of this service. */
export const withoutSecrets = (text: string): string =>
  secret.test(text)
    ? text
        .replaceAll(/\b(pda_live_\w{4}|pda_[a-z]+_)\w+/gi, "$1…")
        .replaceAll(/\b(whsec_|[sr]k_(?:live|test)_)[\w+/=-]+/gi, "$1…")
        .replaceAll(/\b(bearer|basic)\s+[\w.+/=~-]+/gi, "$1 …")
        .replaceAll(/:\/\/[^/\s]*@/g, "://…@")
    : text
