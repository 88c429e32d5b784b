/**
 * Exchanges the user's token for one that the backend accepts (RFC 8693).
 *
 * Health checks use the client's own credentials when it has a secret. Fails closed: a request without a token to
 * exchange is not sent.
 * Source: docs/reference/specification/proxy-command.md (token exchange flags),
 * docs/reference/specification/external-auth.md#tokenExchange (tokenExchange).
 */
import { headerNameViolation } from '../../../schemas/index.ts'
import { clientCredentialsGrant, tokenExchangeGrant, typedServer } from '../../oauth/index.ts'
import { CredentialCache } from '../cache.ts'
import {
  providerOf,
  providerViolations,
  secretViolations,
  secretReader,
  type StrategyModule,
  urlViolations,
} from '../config.ts'
import { tokenTypes, tokenTypeUrn } from '../subject.ts'
import { clientFrom, TokenStrategy } from '../token-strategy.ts'

export const tokenExchange: StrategyModule = {
  problems({ tokenExchange: block }, parts) {
    if (!block) return [{ path: 'tokenExchange', message: 'is required' }]
    const { externalTokenHeaderName: header, clientId, clientSecret, clientSecretEnv } = block
    const headerViolation = header ? headerNameViolation(header, 'injected') : undefined
    const hasSecret = clientSecret !== undefined || clientSecretEnv !== undefined
    return [
      ...urlViolations('tokenExchange.tokenUrl', block.tokenUrl),
      ...secretViolations('tokenExchange.clientSecret', clientSecret, clientSecretEnv, parts),
      ...(hasSecret && !clientId
        ? [{ path: 'tokenExchange.clientId', message: 'must be set when a client secret is given' }]
        : []),
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
  make({ tokenExchange: block = {} }, parts) {
    const { tokenUrl = '', audience, scopes, clientId } = block
    const readSecret = secretReader(block.clientSecret, block.clientSecretEnv, parts)
    const tokenType = tokenTypeUrn(block.subjectTokenType) ?? tokenTypes.access_token
    const base = { server: typedServer(undefined, tokenUrl), fetch: parts.fetch, now: parts.now, scopes }
    const client = () => clientFrom(clientId, readSecret())
    const mayActAlone = clientId !== undefined && readSecret() !== undefined
    return new TokenStrategy(
      {
        type: 'token_exchange',
        headerName: block.externalTokenHeaderName?.toLowerCase() || undefined,
        subject: { provider: providerOf(block.subjectProviderName, parts), tokenType },
        fingerprint: () => CredentialCache.key(JSON.stringify(block), readSecret()),
        obtain: (subjectToken) =>
          tokenExchangeGrant({
            ...base,
            client: client(),
            audience,
            subjectToken,
            subjectTokenType: tokenType,
            requestedTokenType: tokenTypes.access_token,
          }),
        obtainOwn: mayActAlone
          ? () => clientCredentialsGrant({ ...base, client: client(), audience })
          : undefined,
      },
      parts,
    )
  },
}
