/**
 * Addresses of skills and their files. Backends choose their URIs independently of one another, so with several
 * backends, clients see `skill://<backend>/<rest>`. A URI with another scheme becomes `skill://<backend>/~<scheme>/<rest>`.
 * The path of a skill stays the same, so its relative links remain valid.
 * Source: MCP Skills, "Resource Mapping"; docs/guides/skills.md.
 */
const scheme = 'skill://'
const anyUri = /^([a-z][a-z0-9+.-]*):\/\/(.+)$/isu
const otherSchemeMark = /^~([a-z][a-z0-9+.-]*)\/(.*)$/isu

export function isSkillAddress(uri: string): boolean {
  return uri.startsWith(scheme)
}

/** Returns the address that clients see. Returns undefined for a URI without an authority, such as `urn:x`. */
function skillAddress(backend: string, uri: string): string | undefined {
  const [, name, rest] = anyUri.exec(uri) ?? []
  if (name === undefined || rest === undefined) return undefined
  const isPlain = name === 'skill' && !rest.startsWith('~')
  return `${scheme}${backend}/${isPlain ? rest : `~${name}/${rest}`}`
}

/** Returns the backend's URI for a client address. Returns other URIs unchanged. */
export function skillUri(backend: string, address: string): string {
  const prefix = `${scheme}${backend}/`
  if (!address.startsWith(prefix)) return address
  const rest = address.slice(prefix.length)
  const [, name, path = ''] = otherSchemeMark.exec(rest) ?? []
  return name === undefined ? scheme + rest : `${name}://${path}`
}

/** The addresses of one configuration. */
export class SkillAddresses {
  /** Names of the configured backends. Undefined if there is only one backend, whose URIs clients see unchanged. */
  readonly backends: ReadonlySet<string> | undefined
  readonly #only: string | undefined

  constructor(backends: ReadonlySet<string>, only: string | undefined) {
    this.#only = only
    this.backends = only === undefined ? backends : undefined
  }

  addressOf(backend: string, uri: string): string | undefined {
    if (this.backends) return skillAddress(backend, uri)
    return anyUri.test(uri) ? uri : undefined
  }

  uriOf(backend: string, address: string): string {
    return this.backends ? skillUri(backend, address) : address
  }

  /** Returns the backend to which an address belongs, whether or not the backend is available. */
  ownerOf(address: string): string | undefined {
    if (!this.backends) return anyUri.test(address) ? this.#only : undefined
    const end = address.indexOf('/', scheme.length)
    const name = isSkillAddress(address) && end !== -1 ? address.slice(scheme.length, end) : undefined
    return name !== undefined && this.backends.has(name) ? name : undefined
  }
}
