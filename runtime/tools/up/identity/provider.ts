/**
 * The identity provider of `gatehouse up --login`: oidc-provider with one client, the authorization server in front of
 * the virtual server. The provider keeps its records in memory, so users sign in again after a restart.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { type Context, Provider } from 'oidc-provider'
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js'
import { messagePage } from './pages.ts'
import type { Users } from './users.ts'

export interface ProviderOptions {
  /** Origin at which browsers reach the login pages. */
  readonly origin: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  readonly users: Users
}

const daySec = 86_400
/** Name of the session cookie, and prefix of the name of its signature cookie. */
export const sessionCookie = 'gh-login-session'

export function makeProvider({
  origin,
  clientId,
  clientSecret,
  redirectUri,
  users,
}: ProviderOptions): Provider {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'login' }
  const adapters = new Map<string, object>()
  const provider = new Provider(`${origin}/login`, {
    // A bounded store for each kind of record, so that abandoned logins do not evict sessions.
    adapter(model: string): object {
      const adapter = adapters.get(model) ?? createMemoryAdapter(0)(model)
      adapters.set(model, adapter)
      return adapter
    },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        // The provider asks for consent at every login of a native client.
        application_type: 'web',
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [key] },
    cookies: {
      keys: [randomBytes(32).toString('base64url')],
      names: { interaction: 'gh-login', resume: 'gh-login-resume', session: sessionCookie },
    },
    claims: { openid: ['sub'], profile: ['name'] },
    scopes: ['openid', 'profile'],
    responseTypes: ['code'],
    routes: {
      authorization: '/login/auth',
      token: '/login/token',
      userinfo: '/login/me',
      jwks: '/login/jwks',
    },
    interactions: { url: (_ctx: Context, { uid }: { readonly uid: string }) => interactionPath(uid) },
    findAccount(_ctx: Context, id: string) {
      const user = users.withId(id)
      return user && { accountId: id, claims: () => ({ sub: id, name: user.name }) }
    },
    // The authorization server is part of this installation and asks for the user's consent itself.
    async loadExistingGrant({ oidc: { client, session, provider: own } }: Context) {
      const grant = new own.Grant({ clientId: client.clientId, accountId: session?.accountId ?? '' })
      grant.addOIDCScope('openid profile')
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: { enabled: false },
    },
    ttl: {
      // Only the authorization server receives these tokens. That server limits the lifetime of the tokens that it
      // issues to clients.
      AccessToken: 30 * daySec,
      AuthorizationCode: 60,
      Grant: 30 * daySec,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    renderError(ctx: { type: string; body: unknown; set(name: string, value: string): void }) {
      const { html, headers } = messagePage(
        'Sign-in is not possible',
        'Return to your MCP client and connect again.',
      )
      for (const [name, value] of Object.entries(headers)) ctx.set(name, value)
      ctx.type = 'html'
      ctx.body = html
    },
  })
  provider.proxy = true
  return provider
}

export function interactionPath(uid: string): string {
  return `/login/interaction/${uid}`
}
