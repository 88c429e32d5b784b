/** An authorization server whose declared clients exchange the access tokens of another issuer. */
import type { Test } from 'tap'
import type {
  AuthServerConfig,
  DeclaredClientSettings,
  ExchangePolicySettings,
} from '../../../runtime/config/index.ts'
import type { Store } from '../../../runtime/store/index.ts'
import { type Rig, startAuthServer } from '../authserver/authserver.ts'
import { delegate } from '../authserver/delegation.ts'
import { type Platform, startPlatform, trusted } from '../authserver/platform.ts'

export const audience = 'api://agents'

export interface ExternalExchange {
  readonly rig: Rig
  readonly idp: Platform
  /** The declared clients, and the policies. Change them in place, then reload the server. */
  readonly clients: DeclaredClientSettings[]
  readonly policies: ExchangePolicySettings[]
  /** Signs an access token of the user `alice` for the client `chat`. */
  token(claims?: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>
}

/** A policy with the defaults of the schema. */
export function exchangePolicy(
  idp: Pick<Platform, 'issuer'>,
  more: Partial<ExchangePolicySettings> = {},
): ExchangePolicySettings {
  return {
    issuer: trusted(idp, 'idp'),
    expectedAudience: audience,
    actorClaim: 'azp',
    allowedActors: ['chat'],
    allowedDelegateClients: ['agent'],
    allowMayAct: false,
    ...more,
  }
}

/** Starts the server with the clients `agent`, `helper` (which may exchange tokens of `agent`) and `other`. */
export async function startExternalExchange(
  t: Test,
  options: {
    readonly policy?: Partial<ExchangePolicySettings>
    readonly config?: Partial<AuthServerConfig>
    readonly store?: Store
  } = {},
): Promise<ExternalExchange> {
  const idp = await startPlatform(t)
  const clients: DeclaredClientSettings[] = []
  const policies = [exchangePolicy(idp, options.policy)]
  const rig = await startAuthServer(t, {
    ...(options.store && { store: options.store }),
    config(issuer) {
      const { subjectClients: _, ...plain } = delegate('agent', issuer)
      clients.push(plain, delegate('helper', issuer, { subjectClients: ['agent'] }), {
        ...plain,
        clientId: 'other',
      })
      return {
        upstreams: [],
        allowedAudiences: [`${issuer}/mcp`, `${issuer}/other`],
        clients,
        tokenExchange: { lifeMs: 900_000, maxDelegationDepth: 5 },
        exchangePolicies: policies,
        ...options.config,
      }
    },
  })
  const token: ExternalExchange['token'] = (claims = {}, header = {}) =>
    idp.token(
      rig,
      { sub: 'alice', aud: audience, azp: 'chat', scope: 'tools:read tools:write profile', ...claims },
      { typ: 'at+jwt', ...header },
    )
  return { rig, idp, clients, policies, token }
}
