/**
 * Sends a token that the gateway obtains for itself (client_credentials grant). All callers, health checks and list
 * requests share this token.
 *
 * Source: RFC 6749 section 4.4; RFC 8414; RFC 8707; MCP extension "OAuth Client Credentials" (SEP-1046).
 */
import { clientCredentialsGrant, discoverServer, typedServer } from '../../oauth/index.ts'
import { CredentialCache } from '../cache.ts'
import { clientViolations, GatewayClient } from '../client.ts'
import { type StrategyModule, urlViolations } from '../config.ts'
import { TokenStrategy } from '../token-strategy.ts'

export const clientCredentials: StrategyModule = {
  problems({ clientCredentials: block }, parts) {
    if (!block) return [{ path: 'clientCredentials', message: 'is required' }]
    const { issuer, tokenUrl } = block
    const isOne = (issuer === undefined) !== (tokenUrl === undefined)
    return [
      ...(isOne ? [] : [{ path: 'clientCredentials', message: 'set either issuer or tokenUrl' }]),
      ...(issuer === undefined ? [] : urlViolations('clientCredentials.issuer', issuer)),
      ...(tokenUrl === undefined ? [] : urlViolations('clientCredentials.tokenUrl', tokenUrl)),
      ...clientViolations(block, 'clientCredentials.', parts, { required: true }),
    ]
  },
  make({ clientCredentials: block = {} }, parts, field) {
    const { issuer, tokenUrl = '', scopes, resource, audience } = block
    const { fetch, now } = parts
    const client = new GatewayClient(block, `${field}.clientCredentials.`, parts)
    return new TokenStrategy(
      {
        type: 'client_credentials',
        settings: client.settings,
        fingerprint: () => CredentialCache.key(JSON.stringify(block), client.fingerprint()),
        async obtainOwn(dpop) {
          // Without an issuer, the token endpoint is the only identifier for the server.
          const current = client.current(issuer === undefined ? tokenUrl : undefined)
          const server =
            issuer === undefined ? typedServer(undefined, tokenUrl) : await discoverServer(issuer, { fetch })
          const request = { server, client: current, fetch, now, dpop }
          return clientCredentialsGrant({ ...request, scopes, resource, audience })
        },
      },
      parts,
    )
  },
}
