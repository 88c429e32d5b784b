/**
 * Decides which values are secrets. When in doubt, treats a value as a secret, because the opposite mistake would leak
 * a secret.
 */

/** Name parts that mark any value as secret. */
const words = [
  'TOKEN',
  'SECRET',
  'PASS',
  'PWD',
  'PAT',
  'KEY',
  'CRED',
  'AUTH',
  'COOKIE',
  'DSN',
  'SIGNATURE',
  'WEBHOOK',
  'CONNECTIONSTRING',
  'DATABASEURL',
] as const

/** Token prefixes of well-known services, and of JSON Web Tokens. */
const tokens =
  /(?:gh[pousr]_|github_pat_|glpat-|sk-|sk_|pk_|rk_|xox[abeoprs]-|xapp-|AKIA|ASIA|AIza|ya29\.|eyJ[\w-]+\.|npm_|hf_|pypi-|dop_v1_|shpat_|lin_api_|ntn_|secret_|figd_|tvly-|-----BEGIN )[\w./+=-]{6,}/

export function isSecretName(name: string): boolean {
  const plain = name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, '')
    .replaceAll('PATH', '')
  return words.some((word) => plain.includes(word))
}

/** Returns the range in a string that contains a known kind of token. */
export function tokenIn(text: string): { readonly start: number; readonly end: number } | undefined {
  const match = tokens.exec(text)
  return match ? { start: match.index, end: match.index + match[0].length } : undefined
}

/** True unless the value is harmless and its name does not suggest a secret. */
export function isSecret(name: string, value: string): boolean {
  if (value === '') return false
  return isSecretName(name) || !isPlain(value)
}

function isPlain(value: string): boolean {
  if (tokenIn(value)) return false
  return isBooleanOrNumber(value) || isWord(value) || isPath(value) || isPlainUrl(value)
}

function isBooleanOrNumber(value: string): boolean {
  return /^(?:true|false|yes|no|on|off)$/i.test(value) || /^-?\d{1,12}(?:\.\d{1,6})?$/.test(value)
}

/** True for a short readable word, as opposed to random letters and digits. */
function isWord(value: string): boolean {
  return /^[A-Za-z][A-Za-z0-9 .:,_-]{0,30}$/.test(value) && !looksRandom(value)
}

function isPath(value: string): boolean {
  return /^(?:~|\.{1,2})?[/\\]|^[A-Za-z]:[/\\]/.test(value) && value.length <= 512 && !/[\n?=]/.test(value)
}

/** True for a URL without userinfo, query, fragment or random path segments. */
function isPlainUrl(value: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value) || !URL.canParse(value)) return false
  const { username, password, search, hash, pathname } = new URL(value)
  return username + password + search + hash === '' && !pathname.split('/').some(looksRandom)
}

/** True for a mix of letters and digits that is longer than a typical word. */
function looksRandom(text: string): boolean {
  return text.split(/[ .:,_-]/).some((part) => {
    if (part.length >= 24) return true
    return part.length >= 12 && /\d/.test(part) && /[A-Za-z]/.test(part)
  })
}

/** Returns the reason why a URL cannot appear in a manifest in plain text, or undefined. */
export function secretInUrl(url: URL): string | undefined {
  if (url.username !== '' || url.password !== '') return 'the URL contains a user name or password'
  // Checked first, because the message below contains the parameter's name, which can be the token itself.
  if (tokenIn(url.hash)) return 'the URL contains a secret in the fragment'
  for (const [part, parameters] of [
    ['query', url.searchParams],
    ['fragment', new URLSearchParams(url.hash.slice(1))],
  ] as const) {
    for (const [name, value] of parameters)
      if (isSecretName(name) || tokenIn(value) || looksRandom(value))
        return `the URL contains a secret in the ${part} (${name})`
  }
  return tokenIn(url.pathname) ? 'the URL contains a secret in the path' : undefined
}
