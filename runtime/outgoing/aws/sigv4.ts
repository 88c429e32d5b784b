/**
 * Signs a request with temporary credentials (Signature Version 4), using @smithy/signature-v4.
 *
 * The signature covers the method, path, query, body and the headers host, content-type and x-amz-*. These headers and
 * parts must not change after signing; other headers may.
 */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { setHeader, type OutgoingRequest } from '../strategy.ts'

export interface SigningRules {
  readonly region: string
  readonly service: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  readonly date: Date
}

/** Signs the request by setting authorization, x-amz-date and x-amz-security-token. */
export async function signRequest(request: OutgoingRequest, rules: SigningRules): Promise<void> {
  const { accessKeyId, secretAccessKey, sessionToken, region, service } = rules
  const { SignatureV4 } = await import('@smithy/signature-v4')
  const signer = new SignatureV4({
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken === '' ? {} : { sessionToken }) },
    region,
    service,
    sha256: Sha256,
    applyChecksum: false,
  })
  const { url } = request
  const signed = await signer.sign(
    {
      method: request.method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: parseQuery(url.search),
      headers: signedHeaders(request),
      body: request.body,
    },
    { signingDate: rules.date },
  )
  for (const name of ['authorization', 'x-amz-date', 'x-amz-security-token']) {
    const value = signed.headers[name]
    if (value !== undefined) setHeader(request.headers, name, value)
  }
}

function signedHeaders({ headers, url }: OutgoingRequest): Record<string, string> {
  const chosen = Object.entries(headers).filter(([name]) => /^(content-type|x-amz-.*)$/i.test(name))
  return { ...Object.fromEntries(chosen), host: url.host }
}

function parseQuery(search: string): Record<string, string[]> {
  const bag: Record<string, string[]> = {}
  for (const pair of search.slice(1).split('&')) {
    if (pair === '') continue
    const equalsIndex = pair.indexOf('=')
    const name = decode(equalsIndex < 0 ? pair : pair.slice(0, equalsIndex))
    const value = equalsIndex < 0 ? '' : decode(pair.slice(equalsIndex + 1))
    bag[name] = [...(bag[name] ?? []), value]
  }
  return bag
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Hash implementation for the signer, based on node:crypto. */
class Sha256 {
  #hash: Hash | Hmac
  readonly #secret: string | ArrayBuffer | ArrayBufferView | undefined

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret
    this.#hash = this.#fresh()
  }

  update(data: Uint8Array): void {
    this.#hash.update(data)
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }

  reset(): void {
    this.#hash = this.#fresh()
  }

  #fresh(): Hash | Hmac {
    if (this.#secret === undefined) return createHash('sha256')
    const secret = this.#secret instanceof ArrayBuffer ? new Uint8Array(this.#secret) : this.#secret
    return createHmac(
      'sha256',
      typeof secret === 'string'
        ? secret
        : new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength),
    )
  }
}
