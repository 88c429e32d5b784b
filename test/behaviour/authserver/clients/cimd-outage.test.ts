/** Client metadata documents whose host fails or returns errors: how long a cached copy stays usable. */
import t from 'tap'
import { makeClientDocuments } from '../../../../runtime/authserver/clients/client-documents.ts'
import { authServerDefaults } from '../../../../runtime/config/authserver/settings.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { OAuthClientError } from '../../../../runtime/oauth/index.ts'

const minute = 60_000
const clientId = 'https://client.example/client.json'

function setup() {
  let nowMs = 0
  let failure: OAuthClientError | undefined
  const hosts: string[] = []
  const documents = makeClientDocuments({
    config: {
      issuer: 'https://issuer.example',
      insecureAllowHttp: false,
      allowedAudiences: ['https://issuer.example/mcp'],
      scopesSupported: ['openid'],
      baselineClientScopes: [],
      registration: { enabled: true, confidentialClients: false },
      consent: true,
      accessTokenMs: authServerDefaults.accessTokenMs,
      refreshTokenMs: authServerDefaults.refreshTokenMs,
      refreshGraceMs: 60_000,
      authCodeMs: authServerDefaults.authCodeMs,
      grantMs: authServerDefaults.grantMs,
      upstreams: [],
      disableUpstreamTokenInjection: false,
      storage: { type: 'memory' },
      secrets: () => ({ signingKeys: [], hmacSecrets: [] }),
    },
    cimd: { cacheMaxSize: 10, cacheTtlMs: 5 * minute, allowLoopback: true },
    async fetchDocument(url) {
      if (failure) throw failure
      return { client_id: url, client_name: 'Notes', redirect_uris: [`${new URL(url).origin}/cb`] }
    },
    async mayFetch(host) {
      hosts.push(host)
      return true
    },
    now: () => nowMs,
    log: silentLog,
  })
  return {
    hosts,
    find: async (id = clientId): Promise<boolean> => (await documents.find(id)) !== undefined,
    fail: (kind: 'unreachable' | 'absent') => void (failure = new OAuthClientError(kind, 'no document')),
    pass: (ms: number) => void (nowMs += ms),
  }
}

t.test('cimd: while the host is unreachable, the cached copy stays usable for a day', async (t) => {
  const self = setup()
  t.ok(await self.find())
  self.pass(6 * minute)
  self.fail('unreachable')
  t.ok(await self.find(), 'at the start')
  self.pass(5_000)
  t.ok(await self.find(), 'within the pause after the failure')
  self.pass(24 * 60 * minute)
  t.notOk(await self.find(), 'too old')
  t.notOk(await self.find(), 'too old, within the pause')
})

t.test('cimd: a withdrawn document is not used again when the host becomes unreachable', async (t) => {
  const self = setup()
  t.ok(await self.find())
  self.pass(6 * minute)
  self.fail('absent')
  t.notOk(await self.find())
  t.notOk(await self.find(), 'within the pause')
  self.pass(minute)
  self.fail('unreachable')
  t.notOk(await self.find())
})

t.test('cimd: all ports of a host share one limit, except on this machine', async (t) => {
  const self = setup()
  for (const id of ['https://a.example:8001/c', 'https://a.example:8002/c', 'http://127.0.0.1:8003/c']) {
    await self.find(id)
  }
  t.same(self.hosts, ['a.example', 'a.example', '127.0.0.1:8003'])
})
