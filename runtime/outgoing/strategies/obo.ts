/**
 * On-behalf-of exchange at a directory provider: sends the user's token as the assertion and, by default, the client's
 * secret in the body.
 *
 * Off by default; while it is off, every use fails with ENTERPRISE_REQUIRED. The subject is the token of the
 * authenticated caller, never a header of the request.
 * Source: docs/reference/specification/external-auth.md#obo (obo),
 * docs/reference/specification/virtual-server.md#outgoingAuth (config.outgoingAuth type obo).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { jwtBearerGrant, typedServer } from '../../oauth/index.ts'
import { CredentialCache } from '../cache.ts'
import { clientViolations, GatewayClient } from '../client.ts'
import {
  type OboBlock,
  providerViolations,
  type StrategyModule,
  type StrategyParts,
  urlViolations,
} from '../config.ts'
import type { CredentialStrategy } from '../strategy.ts'
import { tokenTypes } from '../subject.ts'
import { TokenStrategy } from '../token-strategy.ts'

export const obo: StrategyModule = {
  problems({ obo: block }, parts) {
    if (!parts.enableObo) return []
    if (!block) return [{ path: 'obo', message: 'is required' }]
    const { audience, scopes = [], cacheSkewSeconds } = block
    return [
      ...urlViolations('obo.tokenUrl', block.tokenUrl),
      ...clientViolations(block, 'obo.', parts, { required: true }),
      ...(audience || scopes.length > 0 ? [] : [{ path: 'obo.audience', message: 'set audience or scopes' }]),
      ...(cacheSkewSeconds !== undefined && cacheSkewSeconds < 0
        ? [{ path: 'obo.cacheSkewSeconds', message: 'must not be negative' }]
        : []),
      // If no name is given, the caller's own token is used, regardless of the configured providers.
      ...(block.subjectTokenProviderName
        ? providerViolations('obo.subjectTokenProviderName', block.subjectTokenProviderName, parts)
        : []),
    ]
  },
  make({ obo: block = {} }, parts, field) {
    return parts.enableObo ? exchange(block, parts, field) : disabledObo
  },
}

/** The strategy to use when on-behalf-of exchange is disabled. */
const disabledObo: CredentialStrategy = {
  type: 'obo',
  perCaller: true,
  headerNames: ['authorization'],
  apply() {
    throw new GatehouseError('ENTERPRISE_REQUIRED')
  },
  refused: () => false,
}

function exchange(block: OboBlock, parts: StrategyParts, field: string): CredentialStrategy {
  const { tokenUrl = '', cacheSkewSeconds } = block
  const client = new GatewayClient(block, `${field}.obo.`, parts, 'client_secret_post')
  const server = typedServer(undefined, tokenUrl)
  const scopes = targetScopes(block)
  return new TokenStrategy(
    {
      type: 'obo',
      settings: client.settings,
      fingerprint: () => CredentialCache.key(JSON.stringify(block), client.fingerprint()),
      forCaller: {
        subject: { provider: block.subjectTokenProviderName, tokenType: tokenTypes.access_token },
        obtain: (assertion, dpop) =>
          jwtBearerGrant({
            server,
            dpop,
            client: client.current(tokenUrl),
            fetch: parts.fetch,
            now: parts.now,
            assertion,
            scopes,
            extra: { requested_token_use: 'on_behalf_of' },
          }),
      },
      marginMs: cacheSkewSeconds === undefined ? undefined : cacheSkewSeconds * 1000,
    },
    parts,
  )
}

/**
 * Returns the scopes to request. `scopes` takes precedence. An audience alone requests its default scope, which covers
 * everything that the user consented to.
 */
function targetScopes({ scopes = [], audience = '' }: OboBlock): readonly string[] {
  if (scopes.length > 0) return scopes
  return [audience.endsWith('/.default') ? audience : `${audience.replace(/\/$/, '')}/.default`]
}
