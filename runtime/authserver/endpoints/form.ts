/**
 * Reads parameters of OAuth requests: query or form body, and Basic credentials.
 *
 * A parameter without a value counts as absent; one that is repeated makes two readers disagree and is refused, except
 * `resource` (RFC 6749 section 3.1, RFC 8707 section 2).
 */
import { type Exchange, readBody } from '../../net/index.ts'
import { clientAuthError, type ClientCredentials } from '../clients/client-directory.ts'
import { OAuthError } from '../model/oauth-error.ts'

/** Largest body of any endpoint of this server. */
export const maxBodyBytes = 65_536

export class Parameters {
  readonly #values: ReadonlyMap<string, readonly string[]>

  constructor(source: URLSearchParams) {
    const values = new Map<string, string[]>()
    for (const [name, value] of source) {
      if (value === '') continue
      const known = values.get(name)
      if (known) known.push(value)
      else values.set(name, [value])
    }
    this.#values = values
  }

  get(name: string): string | undefined {
    return this.#values.get(name)?.[0]
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? []
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  /** The first name that was sent more than once though it may not be. */
  repeated(): string | undefined {
    for (const [name, values] of this.#values) {
      if (values.length > 1 && name !== 'resource') return name
    }
    return undefined
  }

  /** The value, or `invalid_request` naming the parameter. */
  require(name: string): string {
    const value = this.get(name)
    if (value === undefined) throw new OAuthError('invalid_request', `the parameter ${name} is required`)
    return value
  }
}

export function queryOf(exchange: Exchange): Parameters {
  return new Parameters(new URLSearchParams(exchange.query))
}

/** Reads a form body. Refuses other content types and repeated parameters with `invalid_request`. */
export async function formOf(exchange: Exchange): Promise<Parameters> {
  await readBody(exchange, { maxBytes: maxBodyBytes })
  const type = exchange.req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded') {
    throw new OAuthError('invalid_request', 'the body must be application/x-www-form-urlencoded')
  }
  return new Parameters(new URLSearchParams(exchange.body.toString('utf8')))
}

/** Takes a body that is allowed but says nothing off the connection. */
export async function readBodyIfAny(exchange: Exchange): Promise<void> {
  await readBody(exchange, { maxBytes: maxBodyBytes })
}

export function refuseRepeated(parameters: Parameters): void {
  const name = parameters.repeated()
  if (name !== undefined) {
    // The name is the sender's text; only a plain one is repeated.
    const shown = /^[\w.-]{1,64}$/.test(name) ? ` ${name}` : ''
    throw new OAuthError('invalid_request', `the parameter${shown} is repeated`)
  }
}

/** Reads how the client authenticates: a Basic header, or members of the form. Throws OAuthError invalid_client. */
export function clientCredentials(exchange: Exchange, parameters: Parameters): ClientCredentials {
  const header = exchange.req.headers.authorization
  const bodyId = parameters.get('client_id')
  const bodySecret = parameters.get('client_secret')
  if (header !== undefined && /^basic\b/i.test(header)) {
    const pair = basicCredentials(header)
    if (!pair) throw clientAuthError({ isBasic: true })
    if (bodySecret !== undefined || (bodyId !== undefined && bodyId !== pair.id)) {
      throw new OAuthError('invalid_request', 'the client must use one way to authenticate')
    }
    return { id: pair.id, secret: pair.secret, method: 'client_secret_basic', isBasic: true }
  }
  if (parameters.has('client_assertion') || parameters.has('client_assertion_type'))
    throw clientAuthError({ isBasic: false })
  if (bodyId === undefined) throw clientAuthError({ isBasic: false })
  const method = bodySecret === undefined ? 'none' : 'client_secret_post'
  return { id: bodyId, secret: bodySecret, method, isBasic: false }
}

/** RegisteredClient id and secret of a Basic header, form-decoded as RFC 6749 section 2.3.1 asks; undefined when malformed. */
export function basicCredentials(header: string): { id: string; secret: string } | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/=_-]+) *$/i.exec(header) ?? []
  if (encoded === undefined) return undefined
  const pair = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  if (colon < 1) return undefined
  try {
    return { id: formDecode(pair.slice(0, colon)), secret: formDecode(pair.slice(colon + 1)) }
  } catch {
    return undefined
  }
}

function formDecode(text: string): string {
  return decodeURIComponent(text.replace(/\+/g, ' '))
}

/** The token of a Bearer header (RFC 6750 section 2.1); undefined when there is none. */
export function bearerToken(exchange: Exchange): string | undefined {
  const [, token] = /^bearer +([\w\-.~+/]+=*) *$/i.exec(exchange.req.headers.authorization ?? '') ?? []
  return token
}
