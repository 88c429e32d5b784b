/**
 * Serves the protected-resource document at the well-known path, and at that path followed by the resource's path.
 *
 * The document is available to every origin: it contains no secrets, and browser clients need it before they have a
 * token.
 * Source: RFC 9728 sections 2 and 3; docs/reference/specification/proxy-command.md (--resource-url, --oidc-scopes),
 * docs/reference/specification/virtual-server.md#endpoints (endpoints).
 */
import { type Exchange, sendBody, type Stage } from '../net/index.ts'
import { proofAlgorithms, resourceMetadataPath } from '../oauth/index.ts'
import { acceptsProofs, type AdditionalIssuer, type OidcConfig, resourceUrl } from './config.ts'

const root = '/.well-known/oauth-protected-resource'

interface DocumentFacts {
  /** Authorization servers to list. Default: the issuer. */
  readonly servers?: readonly string[]
  /** True if the listener requests client certificates. */
  readonly clientCertificates?: boolean
}

/** Returns the document's members; undefined if the server's own URL is unknown. */
export function protectedResourceDocument(
  config: OidcConfig,
  { servers = advertisedIssuers(config), clientCertificates = false }: DocumentFacts = {},
): Readonly<Record<string, unknown>> | undefined {
  const resource = resourceUrl(config)
  if (resource === undefined) return undefined
  const scopes = config.scopes !== undefined && config.scopes.length > 0 ? config.scopes : ['openid']
  return {
    resource,
    ...(servers.length === 0 ? {} : { authorization_servers: servers }),
    bearer_methods_supported: ['header'],
    scopes_supported: scopes,
    ...(acceptsProofs(config) ? { dpop_signing_alg_values_supported: proofAlgorithms } : {}),
    ...(config.dpop?.mode === 'required' ? { dpop_bound_access_tokens_required: true } : {}),
    ...(clientCertificates ? { tls_client_certificate_bound_access_tokens: true } : {}),
  }
}

/**
 * Returns the issuers that the document lists, starting with the first issuer. `isEmbedded` is true when this process
 * is the first issuer, which is then always listed because clients need it.
 */
export function advertisedIssuers(
  { issuer, advertise = true }: OidcConfig,
  others: readonly AdditionalIssuer[] = [],
  isEmbedded = false,
): readonly string[] {
  return [
    ...(issuer !== undefined && (advertise || isEmbedded) ? [issuer] : []),
    ...others.filter((other) => other.advertise === true).map((other) => other.issuer),
  ]
}

/** For `Stages.route`: returns a stage for the document's paths, undefined for other paths. */
export function protectedResourceRoute(
  config: OidcConfig,
  facts?: DocumentFacts,
): (exchange: Exchange) => Stage<Exchange> | undefined {
  const document = protectedResourceDocument(config, facts)
  const resource = resourceUrl(config)
  if (document === undefined || resource === undefined) return () => undefined
  const body = JSON.stringify(document)
  const resourcePath = resourceMetadataPath(resource)
  const serve: Stage<Exchange> = (exchange) => {
    sendDocument(exchange, body)
  }
  return (exchange) => (exchange.path === root || exchange.path === resourcePath ? serve : undefined)
}

function sendDocument(exchange: Exchange, body: string): void {
  const { req, res } = exchange
  const headers = {
    'Access-Control-Allow-Origin': req.headers.origin ?? '*',
    'Access-Control-Allow-Methods': 'GET, OPTIONS',
    'Access-Control-Allow-Headers': 'mcp-protocol-version, Content-Type, Authorization',
    'Access-Control-Max-Age': '86400',
    Vary: 'Origin',
  }
  if (req.method === 'OPTIONS') {
    res.writeHead(204, headers).end()
  } else if (req.method === 'GET' || req.method === 'HEAD') {
    sendBody(res, 200, 'application/json', body, { ...headers, 'Cache-Control': 'public, max-age=3600' })
  } else {
    sendBody(res, 405, 'application/json', JSON.stringify({ error: 'method_not_allowed' }), {
      ...headers,
      Allow: 'GET, HEAD, OPTIONS',
    })
  }
}
