/** An authorization server with a signed-in user, and declared clients that exchange the user's tokens. */
import type { Test } from 'tap'
import type { AuthServerConfig, DeclaredClientSettings } from '../../../runtime/config/index.ts'
import { type Rig, type RigOptions, startAuthServer } from './authserver.ts'
import { declared, newSecret } from './declared-client.ts'
import { TestClient, type TokenAnswer } from './test-client.ts'

const prefix = 'urn:ietf:params:oauth:'
export const exchangeGrant = `${prefix}grant-type:token-exchange`
export const accessTokenType = `${prefix}token-type:access_token`
export const jwtType = `${prefix}token-type:jwt`
export const idTokenType = `${prefix}token-type:id_token`

export const delegateSecret = newSecret()

/** A declared client with the shared secret. `subjectClients` defaults to all clients. */
export function delegate(
  clientId: string,
  issuer: string,
  more: Partial<DeclaredClientSettings> = {},
): DeclaredClientSettings {
  return declared(clientId, [`${issuer}/mcp`, `${issuer}/other`], {
    secrets: [() => delegateSecret],
    subjectClients: ['*'],
    ...more,
  })
}

export interface Delegation {
  readonly rig: Rig
  /** The client that the user signed in to. */
  readonly app: TestClient
  readonly user: TokenAnswer
  /** The declared clients. Change them in place, then reload the server. */
  readonly clients: DeclaredClientSettings[]
}

interface DelegationOptions {
  readonly clients?: (issuer: string) => readonly DeclaredClientSettings[]
  readonly exchange?: Partial<NonNullable<AuthServerConfig['tokenExchange']>>
  readonly rig?: Omit<RigOptions, 'config'>
  readonly config?: Partial<AuthServerConfig>
  /** Parameters of the user's login. */
  readonly login?: Readonly<Record<string, string>>
}

/** Starts the server with the delegates `agent` and `helper`, and signs a user in to a registered client. */
export async function startDelegation(t: Test, options: DelegationOptions = {}): Promise<Delegation> {
  const clients: DeclaredClientSettings[] = []
  const rig = await startAuthServer(t, {
    ...options.rig,
    config(issuer) {
      const made = options.clients?.(issuer) ?? [delegate('agent', issuer), delegate('helper', issuer)]
      clients.push(...made)
      return {
        allowedAudiences: [`${issuer}/mcp`, `${issuer}/other`],
        scopesSupported: ['openid', 'offline_access', 'tools:read', 'tools:write', 'tools:admin'],
        clients,
        tokenExchange: { lifeMs: 900_000, maxDelegationDepth: 5, ...options.exchange },
        ...options.config,
      }
    },
  })
  const app = await TestClient.register(rig)
  const user = await app.signIn({
    scope: 'openid offline_access tools:read tools:write',
    resource: `${rig.issuer}/mcp`,
    ...options.login,
  })
  return { rig, app, user, clients }
}

/** Exchanges a subject token as a declared client. */
export function exchange(
  { rig }: Pick<Delegation, 'rig'>,
  clientId: string,
  subject: string,
  parameters: Readonly<Record<string, string | undefined>> = {},
): Promise<TokenAnswer> {
  return new TestClient(rig, { client_id: clientId }).token({
    grant_type: exchangeGrant,
    client_secret: delegateSecret,
    subject_token: subject,
    subject_token_type: accessTokenType,
    ...parameters,
  })
}

/** Requests a machine token for a declared client. */
export function ownToken({ rig }: Pick<Delegation, 'rig'>, clientId: string): Promise<TokenAnswer> {
  return new TestClient(rig, { client_id: clientId }).token({
    grant_type: 'client_credentials',
    client_secret: delegateSecret,
    resource: `${rig.issuer}/mcp`,
  })
}

/** Calls an endpoint for tokens as a declared client. */
export function postAs(
  { rig }: Pick<Delegation, 'rig'>,
  clientId: string,
  endpoint: 'introspect' | 'revoke',
  token: string,
): Promise<Response> {
  const body = new URLSearchParams({ client_id: clientId, client_secret: delegateSecret, token })
  return fetch(`${rig.issuer}/oauth/${endpoint}`, { method: 'POST', body })
}
