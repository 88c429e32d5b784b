/**
 * Reads the parameters of OAuth requests (query or form) and client credentials.
 *
 * A parameter without a value is treated as absent. A repeated parameter is rejected, except `resource`, because two
 * readers could use different values (RFC 6749 section 3.1, RFC 8707 section 2).
 */
import { type Exchange, readBody } from '../../net/index.ts'
import { assertionType, claimedClient } from '../clients/client-assertion.ts'
import { clientAuthError, type ClientCredentials } from '../clients/client-directory.ts'
import { spiffeAssertionType } from '../clients/spiffe-clients.ts'
import type { AuthServerContext } from '../login/context.ts'
import { isOwnForm } from '../login/cookies.ts'
import { OAuthError } from '../model/oauth-error.ts'

/** Largest body that any endpoint of this server accepts. */
const maxBodyBytes = 65_536

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

  /** Returns the first repeated parameter, ignoring `resource`. */
  repeated(): string | undefined {
    for (const [name, values] of this.#values) if (values.length > 1 && name !== 'resource') return name
    return undefined
  }

  /** Throws OAuthError invalid_request when the parameter is absent. */
  require(name: string): string {
    const value = this.get(name)
    if (value === undefined) throw new OAuthError('invalid_request', `the ${name} parameter is required`)
    return value
  }
}

export function readQuery(exchange: Exchange): Parameters {
  return new Parameters(new URLSearchParams(exchange.query))
}

/** Reads a body of this media type as text; undefined for any other type. */
export async function readTyped(exchange: Exchange, mediaType: string): Promise<string | undefined> {
  await discardBody(exchange)
  const type = exchange.req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  return type === mediaType ? exchange.body.toString('utf8') : undefined
}

/** Reads and discards a body that is allowed but has no meaning, so that the connection can be reused. */
export async function discardBody(exchange: Exchange): Promise<void> {
  await readBody(exchange, { maxBytes: maxBodyBytes })
}

/** Throws OAuthError invalid_request for any other content type. */
export async function readForm(exchange: Exchange): Promise<Parameters> {
  const text = await readTyped(exchange, 'application/x-www-form-urlencoded')
  if (text === undefined)
    throw new OAuthError('invalid_request', 'the body must be application/x-www-form-urlencoded')
  return new Parameters(new URLSearchParams(text))
}

/** Reads a form, in which no parameter may be repeated. Throws OAuthError invalid_request. */
export async function readUniqueForm(exchange: Exchange): Promise<Parameters> {
  const form = await readForm(exchange)
  const name = form.repeated()
  if (name === undefined) return form
  // The sender controls the name, so the message contains the name only if it has no unusual characters.
  const shown = /^[\w.-]{1,64}$/.test(name) ? ` ${name}` : ''
  throw new OAuthError('invalid_request', `the parameter${shown} is repeated`)
}

/**
 * Throws OAuthError access_denied unless the form comes from the page that was shown to this browser for the subject.
 */
export function checkFormOrigin(
  exchange: Exchange,
  { form, subject }: { readonly form: Parameters; readonly subject: string },
  context: AuthServerContext,
): void {
  const { origin, 'sec-fetch-site': site } = exchange.req.headers
  // Pages send no referrer, so browsers send the origin "null" for the server's own forms too. In that case, the form
  // field decides.
  const isForeign = origin !== undefined && origin !== 'null' && origin !== context.urls.pageOrigin
  const isOwn = isOwnForm(exchange, { subject, field: form.get('form') ?? '' }, context)
  if (isForeign || (site !== undefined && site !== 'same-origin') || !isOwn) {
    throw new OAuthError(
      'access_denied',
      'the form did not come from the page that was shown in this browser',
    )
  }
}

/** Reads the client's authentication method and credentials. Throws OAuthError invalid_client or invalid_request. */
export function readClientCredentials(exchange: Exchange, form: Parameters): ClientCredentials {
  const header = exchange.req.headers.authorization
  const id = form.get('client_id')
  const secret = form.get('client_secret')
  const hasAssertion = form.has('client_assertion') || form.has('client_assertion_type')
  if (header !== undefined && /^basic\b/i.test(header)) {
    const pair = parseBasicCredentials(header)
    if (!pair) throw clientAuthError({ isBasic: true }, 'malformed Basic credentials')
    if (secret !== undefined || hasAssertion || (id !== undefined && id !== pair.id))
      throw severalMethodsError()
    return { ...pair, isNamed: true, method: 'client_secret_basic', isBasic: true }
  }
  if (hasAssertion) {
    if (secret !== undefined) throw severalMethodsError()
    return readAssertion(form)
  }
  if (id === undefined) throw clientAuthError({ isBasic: false }, 'no client authentication')
  const method = secret === undefined ? 'none' : 'client_secret_post'
  return { id, isNamed: true, secret, method, isBasic: false }
}

/** RFC 6749 section 2.3: a client must not use more than one method per request. */
function severalMethodsError(): OAuthError {
  const text = 'the client must use only one authentication method'
  return new OAuthError('invalid_request', text, { rejection: { reason: 'several authentication methods' } })
}

const assertionMethods: ReadonlyMap<string, ClientCredentials['method']> = new Map([
  [assertionType, 'private_key_jwt'],
  [spiffeAssertionType, 'spiffe_jwt'],
])

/**
 * Reads an assertion. If the request contains no client id, the assertion identifies the client (RFC 7521 section 4.2).
 */
function readAssertion(form: Parameters): ClientCredentials {
  const assertion = form.get('client_assertion')
  const method = assertionMethods.get(form.get('client_assertion_type') ?? '')
  if (assertion === undefined || method === undefined)
    throw clientAuthError(
      { isBasic: false },
      'client_assertion is missing, or client_assertion_type is not supported',
    )
  const id = form.get('client_id') ?? claimedClient(assertion)
  if (id === undefined) throw clientAuthError({ isBasic: false }, 'the assertion does not name a client')
  const isNamed = form.has('client_id')
  return { id, isNamed, secret: undefined, assertion, method, isBasic: false }
}

/** Parses a Basic header, form-decoded as RFC 6749 section 2.3.1 requires; undefined when it is malformed. */
export function parseBasicCredentials(header: string): { id: string; secret: string } | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/=_-]+) *$/i.exec(header) ?? []
  if (encoded === undefined) return undefined
  const [, id, secret] = /^([^:]+):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? []
  if (id === undefined || secret === undefined) return undefined
  try {
    return { id: decodeFormText(id), secret: decodeFormText(secret) }
  } catch {
    return undefined
  }
}

function decodeFormText(text: string): string {
  return decodeURIComponent(text.replace(/\+/g, ' '))
}

/** Returns the token of a Bearer header (RFC 6750 section 2.1). */
export function readBearerToken(exchange: Exchange): string | undefined {
  const [, token] = /^bearer +([\w\-.~+/]+=*) *$/i.exec(exchange.req.headers.authorization ?? '') ?? []
  return token
}
