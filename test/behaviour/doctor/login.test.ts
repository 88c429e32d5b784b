/**
 * `gatehouse doctor --login`: each step of a login with a real provider, and the step that fails when one part is
 * broken.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { walk } from '../../helpers/authserver/oidc-provider.ts'
import { shown } from '../../helpers/doctor/cases.ts'
import { type Bend, sendJson, type Stage, startStage } from '../../helpers/doctor/staged.ts'
import { type ExamineOptions, examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'
import type { Finding } from '../../../runtime/tools/doctor/report/finding.ts'

t.setTimeout(180_000)

const redirectUri = 'http://localhost:0/callback'

/** A login in which an automated browser follows every redirect. */
async function login(
  t: Test,
  bend: Bend,
  options: Partial<ExamineOptions> | ((stage: Stage) => Partial<ExamineOptions>) = {},
) {
  const stage = await startStage({ verify: { scope: 'read' }, ...bend })
  t.teardown(() => stage.close())
  const lines: string[] = []
  const pages: string[] = []
  const examination = await examineRemote({
    target: new URL(stage.url),
    redirectUri,
    login: {
      notify: (line) => lines.push(line),
      async open(url) {
        const back = new URL(url).searchParams.get('redirect_uri') ?? ''
        void walk(url, back)
          .then(async (to) => pages.push(await (await fetch(to)).text()))
          .catch(() => {})
        return true
      },
      timeoutMs: 3_000,
      signal: new AbortController().signal,
    },
    ...(typeof options === 'function' ? options(stage) : options),
  })
  const { findings } = examination
  const row = (id: string): Finding | undefined => findings.find((finding) => finding.id === id)
  const first = findings.find(({ result }) => result === 'failed' || result === 'unknown')
  return { stage, findings, row, first, lines, pages }
}

const granting: Bend['provider'] = {
  configuration: { issueRefreshToken: async () => true, rotateRefreshToken: true },
}

await t.test(
  'a client that registers itself: every step works, the renewed token opens a session, and nothing is left behind',
  async (t) => {
    const { stage, row, first, findings, lines, pages } = await login(t, { provider: granting })
    t.equal(first, undefined, shown(findings))
    t.match(row('login-client'), {
      result: 'ok',
      observed: /^registered, with http:\/\/localhost:\d+\/callback$/,
    })
    t.match(row('browser'), { result: 'ok', hop: 'login' })
    t.match(row('code'), { result: 'ok', observed: 'an access token and a refresh token' })
    t.match(row('token'), { result: 'ok', observed: `for ${stage.url}` })
    t.match(row('granted'), { result: 'ok', observed: 'read' })
    t.match(row('renewal'), { result: 'ok', observed: /^renewed; the refresh token changes/ })
    t.match(row('tools'), { result: 'ok' })
    t.match(row('give-back'), {
      result: 'ok',
      observed:
        'refresh tokens are revoked; access tokens stay valid until they expire, the client is deleted',
    })
    t.match(lines[0], /^Opening a browser: http:\/\/127\.0\.0\.1:\d+\/auth\?/)
    t.match(pages, [/You are signed in/])
    t.ok(stage.idp.requests.includes('/token/revocation'))
  },
)

const byHand = {
  client_id: 'by-hand',
  token_endpoint_auth_method: 'none',
  redirect_uris: ['http://localhost/callback'],
  application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'],
}
const asByHand = { clientId: 'by-hand' }

await t.test('a manually registered client is left alone', async (t) => {
  const { row, first, findings } = await login(t, { provider: granting, clients: [byHand] }, asByHand)
  t.equal(first, undefined, shown(findings))
  t.match(row('login-client'), { observed: /^given, with http:\/\/localhost:\d+\/callback$/ })
  t.match(row('give-back'), {
    result: 'ok',
    observed: 'refresh tokens are revoked; access tokens stay valid until they expire',
  })
})

type Intercept = (req: IncomingMessage, res: ServerResponse) => boolean

/** Answers the redirect of the authorization endpoint itself. */
function redirecting(params: Record<string, string>): Intercept {
  return (req, res) => {
    const url = new URL(req.url ?? '', 'http://x')
    if (url.pathname !== '/auth') return false
    const to = new URL(url.searchParams.get('redirect_uri') ?? '')
    const iss = `http://${req.headers.host}`
    const all = { state: url.searchParams.get('state') ?? '', iss, ...params }
    for (const [name, value] of Object.entries(all)) if (value !== '') to.searchParams.set(name, value)
    res.writeHead(303, { location: to.href }).end()
    return true
  }
}

/**
 * Rejects one request to the token endpoint. The first request is made without a browser, the next ones are for the
 * code and the renewal.
 */
function refusing(which: 'code' | 'renewal', body: Record<string, unknown>, status = 400): Intercept {
  let left = which === 'code' ? 2 : 3
  return (req, res) => req.url === '/token' && --left === 0 && sendJson(res, body, status)
}

interface Staged {
  readonly name: string
  readonly bend: Bend
  readonly options?: Partial<ExamineOptions>
  readonly found: { id: string; hop: string; code: string; result?: string; observed?: RegExp; fix?: RegExp }
}

const inAMinute = () => ({ nbf: Math.round(Date.now() / 1000) + 120 })

const staged: readonly Staged[] = [
  {
    name: 'the redirect URI is not registered',
    bend: { clients: [{ ...byHand, redirect_uris: ['http://localhost/elsewhere'] }] },
    options: asByHand,
    found: { id: 'client', hop: 'login', code: 'client.redirect', fix: /exactly the redirect URI/ },
  },
  {
    name: 'the client is unknown',
    bend: {},
    options: { clientId: 'nobody' },
    found: { id: 'client', hop: 'login', code: 'client.unknown' },
  },
  {
    name: 'registration is closed',
    bend: { idp: (req, res) => req.url === '/reg' && sendJson(res, { error: 'access_denied' }, 403) },
    found: { id: 'login-client', hop: 'login', code: 'registration.refused' },
  },
  {
    name: 'PKCE is rejected at the authorization endpoint',
    bend: {
      idp: redirecting({ error: 'invalid_request', error_description: 'code_challenge is not supported' }),
    },
    found: { id: 'client', hop: 'login', code: 'login.pkce', fix: /Enable PKCE with S256/ },
  },
  {
    name: 'the user declines',
    bend: { idp: redirecting({ error: 'access_denied', error_description: 'no' }) },
    found: { id: 'browser', hop: 'login', code: 'login.denied' },
  },
  {
    name: 'the redirect names another issuer',
    bend: { idp: redirecting({ code: 'x', iss: 'http://127.0.0.1:1' }) },
    found: { id: 'browser', hop: 'login', code: 'login.issuer', observed: /iss is http:\/\/127\.0\.0\.1:1,/ },
  },
  {
    name: 'the redirect has no iss although it is promised',
    bend: { idp: redirecting({ code: 'x', iss: '' }) },
    found: { id: 'browser', hop: 'login', code: 'login.issuer' },
  },
  {
    name: 'PKCE is rejected at the token endpoint',
    bend: {
      idp: refusing('code', { error: 'invalid_grant', error_description: 'code_verifier does not match' }),
    },
    found: { id: 'code', hop: 'token', code: 'code.pkce' },
  },
  {
    name: 'a client with a secret that was not given',
    bend: {
      clients: [{ ...byHand, token_endpoint_auth_method: 'client_secret_basic', client_secret: 'x1x2' }],
    },
    options: asByHand,
    found: { id: 'code', hop: 'token', code: 'code.client', fix: /--client-secret-file/ },
  },
  {
    name: 'the token endpoint responds with a page',
    bend: { idp: refusing('code', {}, 200) },
    found: { id: 'code', hop: 'token', code: 'code.response' },
  },
  {
    name: 'the token endpoint is down',
    bend: { idp: refusing('code', {}, 503) },
    found: { id: 'code', hop: 'token', code: 'code.unreachable' },
  },
  {
    name: 'the token is for another audience',
    bend: {
      features: {
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({
            scope: 'read',
            audience: 'https://other.example',
            accessTokenFormat: 'jwt',
          }),
        },
      },
    },
    found: {
      id: 'token',
      hop: 'token',
      code: 'token.audience',
      observed: /^aud is https:\/\/other\.example, .*the server rejected the token$/,
    },
  },
  {
    name: 'a scope is not granted',
    bend: {
      verify: { scope: 'write' },
      resource: (document) => ({ ...document, scopes_supported: ['read', 'write'] }),
    },
    found: { id: 'granted', hop: 'token', code: 'scopes.not-granted', observed: /^not granted: write$/ },
  },
  {
    name: 'no refresh token',
    bend: { provider: { configuration: { issueRefreshToken: async () => false } } },
    found: {
      id: 'renewal',
      hop: 'token',
      code: 'refresh.not-issued',
      result: 'warning',
      observed: /expires in 3\d{3} s/,
    },
  },
  {
    name: 'the renewal is rejected',
    bend: { provider: granting, idp: refusing('renewal', { error: 'invalid_grant' }) },
    found: { id: 'renewal', hop: 'token', code: 'refresh.refused', observed: /invalid_grant/ },
  },
  {
    name: 'the clock of the provider is behind',
    bend: {
      idp(_req, res) {
        res.setHeader('date', new Date(Date.now() - 300_000).toUTCString())
        return false
      },
    },
    found: { id: 'issuer-clock', hop: 'authorization server', code: 'issuer-clock.skew' },
  },
  {
    name: 'tokens begin in the future',
    bend: { provider: { tokenClaims: inAMinute } },
    found: { id: 'token', hop: 'token', code: 'token.not-yet-valid' },
  },
]

for (const { name, bend, options = {}, found } of staged) {
  await t.test(`reports the failed step: ${name}`, async (t) => {
    const { findings, first, row } = await login(t, bend, options)
    const { fix, ...wanted } = found
    const seen = found.result === 'warning' ? row(found.id) : first
    t.match(seen, { ...wanted, ...(fix && { fix: { text: fix } }) }, shown(findings))
    if (found.result === 'warning') t.equal(first, undefined, shown(findings))
  })
}

await t.test('a token that the server repeats appears in no text', async (t) => {
  const seen = new Set<string>()
  const { findings, row } = await login(t, {
    provider: granting,
    server(req, res) {
      const token = req.headers.authorization?.slice(7)
      if (req.url !== '/mcp' || token === undefined) return false
      seen.add(token)
      const challenge = `Bearer error="invalid_token", error_description="${token} is wrong"`
      res.writeHead(401, { 'www-authenticate': challenge }).end()
      return true
    },
  })
  t.match(row('initialize'), { code: 'initialize.token', observed: /\[redacted\] is wrong/ })
  t.ok(seen.size > 0)
  for (const token of seen) t.notMatch(JSON.stringify(findings), token)
})

await t.test('provider texts reach the terminal only escaped', async (t) => {
  const mean = '\u001b[2J\u001b]0;owned\u0007\u202egone'
  const rows = [
    redirecting({ error: 'access_denied', error_description: mean }),
    refusing('code', { error: 'invalid_grant', error_description: mean }),
  ]
  for (const idp of rows) {
    const { first } = await login(t, { idp })
    t.match(first?.observed, /gone/)
    // oxlint-disable-next-line no-control-regex
    t.notMatch(first?.observed, /[\u0000-\u001f\u007f-\u009f\u202e]/)
  }
})

await t.test('addresses that are not http or https are never opened', async (t) => {
  const redirected = await login(t, {
    idp: (req, res) =>
      req.url?.startsWith('/auth?') === true &&
      !!res.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  })
  t.match(redirected.first, { id: 'client', code: 'client.refused', observed: /not http or https/ })
  t.strictSame(redirected.lines, [])
  const named = await login(t, {
    metadata: (document) => ({ ...document, authorization_endpoint: 'file:///etc/passwd' }),
  })
  t.match(named.first, { id: 'endpoints', code: 'endpoints.insecure' })
  t.strictSame(named.lines, [])
})
