/**
 * The proxy's own registration at an authorization server: stored, and renewed before its secret expires (RFC 7592).
 */
import t, { type Test } from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { makeFetch, silentLog } from '../../../runtime/net/index.ts'
import { registerClient, type Registration, updateRegistration } from '../../../runtime/oauth/index.ts'
import type { Located } from '../../../runtime/outgoing/login/locate.ts'
import {
  type LoginClient,
  clientCandidates,
  type ClientParts,
  renewedClient,
} from '../../../runtime/outgoing/login/registration.ts'
import { type PeerResponse, type Loopback, type SeenRequest, startLoopback } from '../../helpers/loopback.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'

const fetch = makeFetch({ maxRedirects: 0 })
t.teardown(() => fetch.close())
const day = 86_400_000
const redirectUri = 'http://localhost:8666/callback'

/** Returns the first candidate. */
async function clientFor(...args: Parameters<typeof clientCandidates>): Promise<LoginClient> {
  for await (const { hasFallback: _, ...client } of clientCandidates(...args)) return client
  throw new Error('there is no way')
}

interface World {
  readonly server: Loopback
  readonly located: Located
  readonly parts: ClientParts
  /** Moves the clock. */
  wait(ms: number): void
}

/** Starts an authorization server whose secrets are valid for ten days; `manage` responds to RFC 7592 requests. */
async function world(
  t: Test,
  manage: (seen: SeenRequest) => PeerResponse,
  more: (origin: string) => Record<string, unknown> = () => ({}),
): Promise<World> {
  let now = 1_800_000_000_000
  let made = 0
  const server: Loopback = await startLoopback((seen) => {
    if (seen.method !== 'POST') return manage(seen)
    made++
    return {
      status: 201,
      body: {
        client_id: `client-${made}`,
        client_secret: 'first',
        client_secret_expires_at: (now + 10 * day) / 1000,
        token_endpoint_auth_method: 'client_secret_basic',
        registration_access_token: 'manage-it',
        registration_client_uri: `${server.url}/reg/client-${made}`,
        ...more(server.url),
      },
    }
  })
  t.teardown(() => server.close())
  const store = new Map<string, unknown>()
  const config = resolveProxyConfig('x', { targetUri: 'http://127.0.0.1:1', remoteAuth: true }, {})
  if (config.remote.kind !== 'oauth') throw new Error('no login')
  return {
    server,
    located: {
      server: {
        issuer: server.url,
        registration_endpoint: `${server.url}/reg`,
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      },
      issuer: server.url,
      scopes: ['read'],
      resource: undefined,
    },
    parts: {
      settings: config.remote,
      fetch,
      log: silentLog,
      persisted: {
        read: (name) => store.get(name),
        write: (name, value) => void store.set(name, value),
        remove: (name) => void store.delete(name),
        exclusively: (_name, _signal, run) => run(),
      },
      signal: new AbortController().signal,
      now: () => now,
    },
    wait(ms) {
      now += ms
    },
  }
}

await t.test('registration: reused unchanged until a day before its secret expires', async (t) => {
  const { server, located, parts, wait } = await world(t, (seen) => ({
    body: {
      client_id: 'client-1',
      client_secret: 'second',
      client_secret_expires_at: (parts.now() + 10 * day) / 1000,
      ...(seen.body.includes('"client_secret":"first"') ? {} : { error: 'invalid_client_metadata' }),
    },
  }))
  const first = await clientFor(located, redirectUri, parts)
  t.match(first.client, { clientId: 'client-1', clientSecret: 'first' })
  wait(8 * day)
  t.same(await clientFor(located, redirectUri, parts), first)
  t.same(await renewedClient(first, located, parts), first)
  t.equal(server.seen.length, 1, 'no request was sent')
  wait(1.5 * day)
  const renewed = await renewedClient(first, located, parts)
  t.match(renewed.client, {
    clientId: 'client-1',
    clientSecret: 'second',
    authMethod: 'client_secret_basic',
  })
  const put = server.seen[1]
  t.match(put, { method: 'PUT', path: '/reg/client-1' })
  t.equal(put?.headers.authorization, 'Bearer manage-it')
  const { registration_access_token: token, client_secret_expires_at: end } = JSON.parse(put?.body ?? '')
  t.same([token, end], [undefined, undefined], 'members that RFC 7592 forbids are not sent')
  t.equal(renewed.registration?.value.registrationAccessToken, 'manage-it', 'not answered: stays')
  t.same(await clientFor(located, redirectUri, parts), renewed, 'the next start uses it, too')
  t.equal(server.seen.length, 2)
})

await t.test(
  'registration: a registration that cannot be renewed is used until it expires, then created again',
  async (t) => {
    const { server, located, parts, wait } = await world(t, () => ({ status: 503 }))
    const first = await clientFor(located, redirectUri, parts)
    wait(9.5 * day)
    t.equal((await renewedClient(first, located, parts)).client.clientSecret, 'first')
    wait(day)
    t.equal((await clientFor(located, redirectUri, parts)).client.clientId, 'client-2')
    t.same(
      server.seen.map(({ method }) => method),
      ['POST', 'PUT', 'PUT', 'POST'],
    )
  },
)

await t.test(
  'registration: its management token is sent only to the registration endpoint’s origin',
  async (t) => {
    const other = await startLoopback(() => ({ body: {} }))
    t.teardown(() => other.close())
    const { located, parts, wait } = await world(
      t,
      () => ({ body: {} }),
      () => ({ registration_client_uri: `${other.url}/reg/client-1` }),
    )
    const first = await clientFor(located, redirectUri, parts)
    wait(9.5 * day)
    t.same(await renewedClient(first, located, parts), first)
    t.same(other.seen, [])
  },
)

await t.test('registration: a response about another client is ignored', async (t) => {
  const { located, parts, wait } = await world(t, () => ({
    body: { client_id: 'somebody', client_secret: 'x' },
  }))
  const first = await clientFor(located, redirectUri, parts)
  wait(9.5 * day)
  t.same(await renewedClient(first, located, parts), first)
})

await t.test('registration: a real provider accepts the update', async (t) => {
  const idp = await startOidcProvider({
    features: {
      registrationManagement: { enabled: true, rotateRegistrationAccessToken: true },
      registration: { enabled: true },
    },
  })
  t.teardown(() => idp.close())
  const metadata = {
    redirect_uris: [redirectUri],
    application_type: 'native' as const,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic',
  }
  const made: Registration = await registerClient(`${idp.issuer}/reg`, metadata, { fetch })
  const updated = await updateRegistration(made, metadata, { fetch })
  t.equal(updated.clientId, made.clientId)
  t.ok(updated.clientSecret)
  t.not(updated.registrationAccessToken, made.registrationAccessToken, 'the provider rotates it')
  t.equal((await updateRegistration(updated, metadata, { fetch })).clientId, made.clientId)
})
