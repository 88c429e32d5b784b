/**
 * Exchanges the user's token for a token that the backend accepts (RFC 8693).
 *
 * Health checks use the client's own credentials if the client has a secret. Fails closed: a request without a token to
 * exchange is not sent.
 * Source: docs/reference/specification/proxy-command.md (token exchange flags),
 * docs/reference/specification/external-auth.md#tokenExchange (tokenExchange).
 */
import { headerNameViolation } from '../../../schemas/index.ts'
import { clientCredentialsGrant, tokenExchangeGrant, typedServer } from '../../oauth/index.ts'
import { CredentialCache } from '../cache.ts'
import { clientViolations, GatewayClient } from '../client.ts'
import { providerOf, providerViolations, type StrategyModule, urlViolations } from '../config.ts'
import { tokenTypes, tokenTypeUrn } from '../subject.ts'
import { TokenStrategy } from '../token-strategy.ts'

export const tokenExchange: StrategyModule = {
  problems({ tokenExchange: block }, parts) {
    if (!block) return [{ path: 'tokenExchange', message: 'is required' }]
    const { externalTokenHeaderName: header } = block
    const headerViolation = header ? headerNameViolation(header, 'injected') : undefined
    return [
      ...urlViolations('tokenExchange.tokenUrl', block.tokenUrl),
      ...clientViolations(block, 'tokenExchange.', parts),
      ...(headerViolation === undefined
        ? []
        : [{ path: 'tokenExchange.externalTokenHeaderName', message: headerViolation }]),
      ...(tokenTypeUrn(block.subjectTokenType) === undefined
        ? [
            {
              path: 'tokenExchange.subjectTokenType',
              message: 'must be access_token, id_token, jwt or one of their full URNs',
            },
          ]
        : []),
      ...providerViolations('tokenExchange.subjectProviderName', block.subjectProviderName, parts),
    ]
  },
  make({ tokenExchange: block = {} }, parts, field) {
    const { tokenUrl = '', audience, scopes } = block
    const client = new GatewayClient(block, `${field}.tokenExchange.`, parts)
    const tokenType = tokenTypeUrn(block.subjectTokenType) ?? tokenTypes.access_token
    const base = { server: typedServer(undefined, tokenUrl), fetch: parts.fetch, now: parts.now, scopes }
    return new TokenStrategy(
      {
        type: 'token_exchange',
        headerName: block.externalTokenHeaderName?.toLowerCase() || undefined,
        settings: client.settings,
        fingerprint: () => CredentialCache.key(JSON.stringify(block), client.fingerprint()),
        forCaller: {
          subject: { provider: providerOf(block.subjectProviderName, parts), tokenType },
          obtain: (subjectToken, dpop) =>
            tokenExchangeGrant({
              ...base,
              dpop,
              client: client.current(tokenUrl),
              audience,
              subjectToken,
              subjectTokenType: tokenType,
              requestedTokenType: tokenTypes.access_token,
            }),
        },
        obtainOwn: client.canActAlone
          ? (dpop) => clientCredentialsGrant({ ...base, dpop, client: client.current(tokenUrl), audience })
          : undefined,
      },
      parts,
    )
  },
}
