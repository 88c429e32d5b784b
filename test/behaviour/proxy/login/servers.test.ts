/** The proxy's own login at authorization servers that lack PKCE, or that reject the proxy's client. */
import { mkdtempSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runGatehouse } from '../../../helpers/gatehouse.ts'
import { startLogin, startWorld, type World } from '../../../helpers/proxy/login-rig.ts'
import { proves } from '../../../helpers/proves.ts'

proves('1.rule.2', '1.flag.remote-auth-issuer', '1.does.register')

const documentUrl = 'https://client.example/gatehouse.json'

type Change = (metadata: Record<string, unknown>) => Record<string, unknown>

/** A relay in front of a provider's discovery document, which it changes. */
function changing(change: Change): (req: IncomingMessage, res: ServerResponse) => boolean {
  return (req, res) => {
    if (!req.url?.startsWith('/.well-known/') || req.headers['x-unchanged'] !== undefined) return false
    const response = async (): Promise<void> => {
      const original = await fetch(`http://${req.headers.host}${req.url}`, {
        headers: { 'x-unchanged': 'yes' },
      })
      res.writeHead(original.status, { 'content-type': 'application/json' })
      if (!original.ok) return void res.end('{}')
      const metadata = Object.fromEntries(Object.entries((await original.json()) as object))
      res.end(JSON.stringify(change(metadata)))
    }
    void response()
    return true
  }
}

const announcesDocuments: Change = (metadata) => ({
  ...metadata,
  client_id_metadata_document_supported: true,
})

async function startChanged(
  t: Test,
  change: Change,
  response?: (req: IncomingMessage, res: ServerResponse) => boolean,
): Promise<World> {
  const metadata = changing(change)
  const world = await startWorld({
    intercept: (req, res) => metadata(req, res) || response?.(req, res) === true,
  })
  t.teardown(() => world.close())
  return world
}

for (const [what, change, found] of [
  ['only plain', () => ['plain'], /lists plain/],
  ['no methods at all', () => undefined, /has no code_challenge_methods_supported/],
] as const) {
  await t.test(`PKCE: a configured issuer whose metadata has ${what} is rejected, exit 3`, async (t) => {
    const world = await startChanged(t, (metadata) => ({
      ...metadata,
      code_challenge_methods_supported: change(),
    }))
    const { code, stderr } = await runGatehouse(
      [
        'proxy',
        ...['--target-uri', world.target.url, '--remote-auth', '--remote-auth-issuer', world.idp.issuer],
        ...['--remote-auth-skip-browser', '--remote-auth-callback-port', '0', 'demo'],
      ],
      '',
      { ...process.env, GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'login-')) },
    )
    t.equal(code, 3)
    t.match(stderr, /does not advertise PKCE with S256/)
    t.match(stderr, found)
    t.match(
      stderr,
      /--remote-auth-authorize-url and --remote-auth-token-url/,
      'the error names the alternative',
    )
    t.notOk(world.idp.requests.includes('/reg'), 'nothing was registered')
    t.notOk(world.idp.requests.includes('/auth'))
  })
}

for (const named of ['by the target', 'by a flag'] as const) {
  await t.test(`a server named ${named} without metadata: the error names the flags that help`, async (t) => {
    const world = await startWorld({
      intercept(req, res) {
        if (!req.url?.includes('/.well-known/')) return false
        res.writeHead(404).end('Not Found')
        return true
      },
    })
    t.teardown(() => world.close())
    const issuer = named === 'by a flag' ? ['--remote-auth-issuer', world.idp.issuer] : []
    const { code, stderr } = await runGatehouse(
      [
        'proxy',
        ...['--target-uri', world.target.url, '--remote-auth', ...issuer],
        ...['--remote-auth-skip-browser', '--remote-auth-callback-port', '0', 'demo'],
      ],
      '',
      { ...process.env, GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'login-')) },
    )
    t.equal(code, 3)
    t.match(stderr, /has no metadata document/)
    t.match(stderr, /--remote-auth-authorize-url and --remote-auth-token-url/)
  })
}

await t.test('PKCE: configured endpoints have no metadata to compare with', async (t) => {
  const world = await startChanged(t, (metadata) => ({
    ...metadata,
    code_challenge_methods_supported: undefined,
  }))
  const run = await startLogin(world, {
    remoteAuth: true,
    remoteAuthClientId: 'typed',
    remoteAuthAuthorizeUrl: `${world.idp.issuer}/auth`,
    remoteAuthTokenUrl: `${world.idp.issuer}/token`,
  })
  t.teardown(() => run.proxy.close({ graceMs: 0 }))
  t.equal(new URL(await run.loginUrl()).searchParams.get('code_challenge_method'), 'S256')
})

await t.test(
  'metadata document: if the server shows a rejection page, the proxy registers instead',
  async (t) => {
    const world = await startChanged(t, announcesDocuments)
    const run = await startLogin(
      world,
      { remoteAuth: true, remoteAuthIssuer: world.idp.issuer },
      { GATEHOUSE_CLIENT_METADATA_URL: documentUrl },
    )
    t.teardown(() => run.proxy.close({ graceMs: 0 }))
    const url = new URL(await run.loginUrl())
    t.not(url.searchParams.get('client_id'), documentUrl, 'the user is redirected with the registered client')
    t.ok(world.idp.requests.includes('/reg'))
    await run.browse()
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
  },
)

for (const where of ['with the redirect', 'at the token endpoint'] as const) {
  await t.test(`metadata document: a rejection ${where} is followed by a registration`, async (t) => {
    let asked = 0
    const world = await startChanged(t, announcesDocuments, (req, res) => {
      const { pathname, searchParams } = new URL(req.url ?? '', 'http://x')
      if (pathname === '/auth' && searchParams.get('client_id') === documentUrl) {
        asked++
        const back = new URL(searchParams.get('redirect_uri') ?? '')
        back.searchParams.set('state', searchParams.get('state') ?? '')
        back.searchParams.set('iss', `http://${req.headers.host}`)
        if (where === 'with the redirect') back.searchParams.set('error', 'unauthorized_client')
        else back.searchParams.set('code', 'of-the-document')
        // Returns its login page when the proxy checks the client in advance.
        if (asked === 1) res.end('sign in')
        else res.writeHead(303, { location: back.href }).end()
        return true
      }
      if (pathname !== '/token' || asked === 0 || refused) return false
      refused = true
      res.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}')
      return true
    })
    let refused = where === 'with the redirect'
    const run = await startLogin(
      world,
      { remoteAuth: true, remoteAuthIssuer: world.idp.issuer },
      { GATEHOUSE_CLIENT_METADATA_URL: documentUrl },
    )
    t.teardown(() => run.proxy.close({ graceMs: 0 }))
    t.equal(new URL(await run.loginUrl()).searchParams.get('client_id'), documentUrl)
    t.equal((await run.browse()).status, 400)
    t.not(new URL(await run.loginUrl(2)).searchParams.get('client_id'), documentUrl)
    await run.browse(2)
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
  })
}

await t.test('metadata document: without a registration endpoint it is the only option', async (t) => {
  const world = await startChanged(t, (metadata) => ({
    ...announcesDocuments(metadata),
    registration_endpoint: undefined,
  }))
  const run = await startLogin(
    world,
    { remoteAuth: true, remoteAuthIssuer: world.idp.issuer },
    { GATEHOUSE_CLIENT_METADATA_URL: documentUrl },
  )
  t.teardown(() => run.proxy.close({ graceMs: 0 }))
  t.equal(new URL(await run.loginUrl()).searchParams.get('client_id'), documentUrl)
  t.notOk(world.idp.requests.includes('/auth'), 'and the server is not checked in advance')
})

await t.test('registration: one that the server has lost is repeated', async (t) => {
  const world = await startChanged(t, (metadata) => metadata)
  const env = { GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'lost-')) }
  const input = { remoteAuth: true, remoteAuthIssuer: world.idp.issuer, remoteAuthCallbackPort: '18667' }
  const first = await startLogin(world, input, env)
  const before = new URL(await first.loginUrl()).searchParams.get('client_id') ?? ''
  await first.browse()
  await first.proxy.ready
  await world.idp.provider.Client.adapter.destroy(before)
  world.response = { status: 401, challenge: 'Bearer error="invalid_token"' }
  const refused = await first.call()
  t.equal(refused.status, 502, 'the refresh token was bound to the client')
  t.match(await refused.text(), /sign in again/)
  world.response = undefined
  await first.proxy.close({ graceMs: 0 })

  const second = await startLogin(world, input, env)
  t.teardown(() => second.proxy.close({ graceMs: 0 }))
  t.not(new URL(await second.loginUrl()).searchParams.get('client_id'), before)
  await second.browse()
  await second.proxy.ready
  t.equal((await second.call()).status, 200)
})

/** Responses of authorization servers to an unknown client, other than the page with status 400. */
const refusals: readonly {
  readonly name: string
  readonly refuse: (res: ServerResponse, redirect: URL) => void
}[] = [
  {
    name: '422 JSON',
    refuse: (res) => void res.writeHead(422, { 'content-type': 'application/json' }).end('{}'),
  },
  { name: '410', refuse: (res) => void res.writeHead(410).end('gone') },
  { name: '500', refuse: (res) => void res.writeHead(500).end('oops') },
  {
    name: 'a redirect to its own error page',
    refuse: (res) => void res.writeHead(302, { location: '/error?error=invalid_client' }).end(),
  },
  {
    name: 'a redirect with invalid_redirect_uri',
    refuse(res, redirect) {
      redirect.searchParams.set('error', 'invalid_redirect_uri')
      res.writeHead(302, { location: redirect.href }).end()
    },
  },
  {
    name: 'a redirect with invalid_request',
    refuse(res, redirect) {
      redirect.searchParams.set('error', 'invalid_request')
      res.writeHead(302, { location: redirect.href }).end()
    },
  },
]

/** Rejects authorization requests of the clients in the set. */
function refusing(
  clients: ReadonlySet<string>,
  refuse: (res: ServerResponse, redirect: URL) => void,
): (req: IncomingMessage, res: ServerResponse) => boolean {
  return (req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://x')
    if (pathname !== '/auth' || !clients.has(searchParams.get('client_id') ?? '')) return false
    const redirect = new URL(searchParams.get('redirect_uri') ?? '')
    redirect.searchParams.set('state', searchParams.get('state') ?? '')
    redirect.searchParams.set('iss', `http://${req.headers.host}`)
    refuse(res, redirect)
    return true
  }
}

for (const { name, refuse } of refusals) {
  await t.test(`metadata document: ${name} is a rejection`, async (t) => {
    const world = await startChanged(t, announcesDocuments, refusing(new Set([documentUrl]), refuse))
    const run = await startLogin(
      world,
      { remoteAuth: true, remoteAuthIssuer: world.idp.issuer },
      { GATEHOUSE_CLIENT_METADATA_URL: documentUrl },
    )
    t.teardown(() => run.proxy.close({ graceMs: 0 }))
    t.not(new URL(await run.loginUrl()).searchParams.get('client_id'), documentUrl)
    await run.browse()
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
  })

  await t.test(`registration: ${name} for a stored registration causes a new one`, async (t) => {
    const lost = new Set<string>()
    const world = await startChanged(t, (metadata) => metadata, refusing(lost, refuse))
    const env = { GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'lost-')) }
    // The redirect URI is part of the registration's key.
    const input = { remoteAuth: true, remoteAuthIssuer: world.idp.issuer, remoteAuthCallbackPort: '18668' }
    const first = await startLogin(world, input, env)
    lost.add(new URL(await first.loginUrl()).searchParams.get('client_id') ?? '')
    await first.proxy.close({ graceMs: 0 })
    const second = await startLogin(world, input, env)
    t.teardown(() => second.proxy.close({ graceMs: 0 }))
    t.notOk(lost.has(new URL(await second.loginUrl()).searchParams.get('client_id') ?? ''))
    await second.browse()
    await second.proxy.ready
    t.equal((await second.call()).status, 200)
  })
}

for (const status of [401, 403]) {
  await t.test(`metadata document: a bare ${status} from the token endpoint is a rejection`, async (t) => {
    let codes = 0
    const world = await startChanged(t, announcesDocuments, (req, res) => {
      const { pathname, searchParams } = new URL(req.url ?? '', 'http://x')
      if (pathname === '/auth' && searchParams.get('client_id') === documentUrl) {
        const back = new URL(searchParams.get('redirect_uri') ?? '')
        back.search = new URLSearchParams({
          code: 'of-the-document',
          state: searchParams.get('state') ?? '',
          iss: `http://${req.headers.host}`,
        }).toString()
        res.writeHead(303, { location: back.href }).end()
        return true
      }
      if (pathname !== '/token' || ++codes > 1) return false
      res.writeHead(status, { 'content-type': 'text/html' }).end('no')
      return true
    })
    const run = await startLogin(
      world,
      { remoteAuth: true, remoteAuthIssuer: world.idp.issuer },
      { GATEHOUSE_CLIENT_METADATA_URL: documentUrl },
    )
    t.teardown(() => run.proxy.close({ graceMs: 0 }))
    t.equal(new URL(await run.loginUrl()).searchParams.get('client_id'), documentUrl)
    await run.browse()
    t.not(new URL(await run.loginUrl(2)).searchParams.get('client_id'), documentUrl)
    await run.browse(2)
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
  })
}

for (const what of ['a metadata document', 'a stored registration'] as const) {
  await t.test(`after an incomplete login with ${what}, the next login registers`, async (t) => {
    const refused = new Set([documentUrl])
    // An error page with status 200 looks the same as a login page.
    const page = refusing(refused, (res) => void res.end('<h1>Unknown client</h1>'))
    const world = await startChanged(
      t,
      what === 'a metadata document' ? announcesDocuments : (same) => same,
      page,
    )
    const env = {
      GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'lost-')),
      GATEHOUSE_CLIENT_METADATA_URL: documentUrl,
    }
    const input = { remoteAuth: true, remoteAuthIssuer: world.idp.issuer, remoteAuthCallbackPort: '18669' }
    if (what === 'a stored registration') {
      const first = await startLogin(world, input, env)
      refused.add(new URL(await first.loginUrl()).searchParams.get('client_id') ?? '')
      await first.proxy.close({ graceMs: 0 })
    }
    const second = await startLogin(world, { ...input, remoteAuthTimeout: '1s' }, env)
    t.ok(refused.has(new URL(await second.loginUrl()).searchParams.get('client_id') ?? ''))
    await t.rejects(second.proxy.ready, {
      message: /not completed within 1s.*next login uses a new one/,
    })
    await second.proxy.close({ graceMs: 0 })

    const third = await startLogin(world, input, env)
    t.teardown(() => third.proxy.close({ graceMs: 0 }))
    t.notOk(refused.has(new URL(await third.loginUrl()).searchParams.get('client_id') ?? ''))
    await third.browse()
    await third.proxy.ready
    t.equal((await third.call()).status, 200)
  })
}

await t.test('registration: integrated sign-in and a busy server are not rejections', async (t) => {
  const known = new Set<string>()
  let refuse = (res: ServerResponse): void =>
    void res.writeHead(401, { 'www-authenticate': 'Negotiate' }).end()
  const world = await startChanged(
    t,
    (metadata) => metadata,
    refusing(known, (res) => refuse(res)),
  )
  const env = { GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'lost-')) }
  const input = { remoteAuth: true, remoteAuthIssuer: world.idp.issuer, remoteAuthCallbackPort: '18670' }
  const first = await startLogin(world, input, env)
  known.add(new URL(await first.loginUrl()).searchParams.get('client_id') ?? '')
  await first.proxy.close({ graceMs: 0 })
  for (const status of [401, 408, 429, 503]) {
    if (status !== 401) refuse = (res) => void res.writeHead(status).end()
    const again = await startLogin(world, input, env)
    t.ok(known.has(new URL(await again.loginUrl()).searchParams.get('client_id') ?? ''), String(status))
    await again.proxy.close({ graceMs: 0 })
  }
})
