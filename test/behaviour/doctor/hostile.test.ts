/**
 * `gatehouse doctor URL` with hostile names, certificates and servers: TLS failures, internal addresses in documents,
 * control characters, commands and secrets in texts.
 */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { issueCertificate } from '../../../hooks/certificates/issue.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { resolverOf, sendJson, startBare, startStage } from '../../helpers/doctor/staged.ts'
import { type ExamineOptions, examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'
import type { Finding } from '../../../runtime/tools/doctor/report/finding.ts'

t.setTimeout(180_000)

const day = 86_400_000
const host = 'mcp.test'
const lookup = resolverOf({ [host]: '127.0.0.1', 'mean.test': '127.0.0.1', 'inside.test': '10.1.2.3' })

async function certificate(name: string, fromDays: number, days: number) {
  const {
    ca,
    certificate: cert,
    key,
  } = await issueCertificate({
    names: [name],
    now: new Date(Date.now() + fromDays * day),
    lifetimeMs: days * day,
  })
  return { ca, cert, key }
}

async function firstOf(options: ExamineOptions): Promise<Finding | undefined> {
  const { findings } = await examineRemote({ lookup, ...options })
  return findings.find(({ result }) => result === 'failed' || result === 'unknown')
}

await t.test('tls: each failure has its own code and fix', async (t) => {
  const rows = [
    { name: host, from: -30, days: 10, trusted: true, code: 'tls.expired', fix: /Renew the certificate/ },
    { name: host, from: 5, days: 10, trusted: true, code: 'tls.not-yet-valid', fix: /clock on this machine/ },
    {
      name: 'other.test',
      from: 0,
      days: 90,
      trusted: true,
      code: 'tls.name',
      fix: /subject alternative names/,
    },
    { name: host, from: 0, days: 90, trusted: false, code: 'tls.chain', fix: /full chain.*--ca-file/ },
  ]
  for (const { name, from, days, trusted, code, fix } of rows) {
    const { ca, cert, key } = await certificate(name, from, days)
    const server = await startBare((_req, res) => void res.end(), { cert, key })
    t.teardown(() => server.close())
    const target = new URL(`https://${host}:${server.port}/mcp`)
    t.match(await firstOf({ target, ...(trusted && { ca }) }), {
      hop: 'network',
      id: 'tls',
      code,
      fix: { text: fix },
    })
  }
})

await t.test(
  'tls: a certificate that expires soon is a warning, and plain HTTP on the port is a failure',
  async (t) => {
    const { ca, cert, key } = await certificate(host, 0, 5)
    const server = await startBare((_req, res) => void res.writeHead(404).end(), { cert, key })
    const plain = await startBare((_req, res) => void res.end())
    t.teardown(() => Promise.all([server.close(), plain.close()]))
    const { findings } = await examineRemote({
      lookup,
      ca,
      target: new URL(`https://${host}:${server.port}/mcp`),
    })
    t.match(
      findings.find(({ id }) => id === 'tls'),
      { result: 'warning', code: 'tls.expires-soon' },
    )
    t.match(await firstOf({ target: new URL(`https://${host}:${plain.port}/mcp`) }), { code: 'tls.not-tls' })
  },
)

await t.test('names: unknown names and names with an underscore are reported', async (t) => {
  t.match(await firstOf({ target: new URL('https://nowhere.test/mcp') }), {
    hop: 'network',
    code: 'dns.not-found',
    fix: { text: /spelling/ },
  })
  t.match(await firstOf({ target: new URL('https://my_server.test/mcp') }), {
    code: 'dns.underscore',
    fix: { text: /hyphen/ },
  })
})

await t.test('Entra ID: findings with its issuer include its fixes', async (t) => {
  const idpHost = 'login.microsoftonline.com'
  const { ca, cert, key } = await certificate(idpHost, 0, 90)
  const idp = await startBare(
    (req, res) => {
      const issuer = `https://${idpHost}:${idp.port}/tenant/v2.0`
      if (req.url !== '/tenant/v2.0/.well-known/openid-configuration') return void res.writeHead(404).end()
      sendJson(res, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
      })
    },
    { cert, key },
  )
  const stage = await startStage({
    resource: (document) => ({
      ...document,
      authorization_servers: [`https://${idpHost}:${idp.port}/tenant/v2.0`],
    }),
  })
  t.teardown(() => Promise.all([idp.close(), stage.close()]))
  const { findings, profile } = await examineRemote({
    target: new URL(stage.url),
    ca,
    lookup: resolverOf({ [idpHost]: '127.0.0.1' }),
  })
  t.equal(profile?.id, 'entra')
  t.match(
    findings.find(({ result }) => result === 'failed'),
    {
      code: 'pkce.absent',
      fix: { text: /^Entra ID supports S256/, docs: /^https:\/\/learn\.microsoft\.com/ },
    },
  )
  t.match(
    findings.find(({ id }) => id === 'registration'),
    { fix: { text: /App registrations/ } },
  )
})

await t.test('a document of a private server never leads to a metadata service', async (t) => {
  const stage = await startStage({
    resource: (document) => ({ ...document, authorization_servers: ['http://169.254.169.254/latest'] }),
  })
  t.teardown(() => stage.close())
  t.match(await firstOf({ target: new URL(stage.url), lookup: undefined }), {
    hop: 'authorization server',
    id: 'issuer-host',
    code: 'address.refused',
  })
})

await t.test('server texts reach neither the terminal nor the shell unescaped', async (t) => {
  const stage = await startStage({
    open: true,
    server(req, res) {
      if (req.url !== '/mcp' || req.method !== 'POST') return false
      res
        .writeHead(307, { location: "/$(touch${IFS}owned)';reboot;'\u001b[2J".replace('\u001b', '%1b') })
        .end()
      return true
    },
    resource: (document) => ({ ...document, resource: '\u001b]0;owned\u0007\u202emcp' }),
  })
  t.teardown(() => stage.close())
  const { code, stdout, stderr } = await runGatehouse(['doctor', stage.url])
  t.equal(code, 1)
  t.equal(stderr, '')
  // oxlint-disable-next-line no-control-regex
  t.notMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
})

await t.test('a URL from a server is quoted in the suggested command', async (t) => {
  const stage = await startStage({
    challenge: ({ origin }) => `Bearer resource_metadata="${origin}/$(reboot);'x"`,
  })
  t.teardown(() => stage.close())
  const found = await firstOf({ target: new URL(stage.url) })
  t.match(found, { code: 'resource-document.challenge-url' })
  t.match(found?.proof, /^curl -si 'http:\/\/127\.0\.0\.1:\d+\/\$\(reboot\);'\\''x'$/)
})

await t.test('a token that the server repeats is in no report', async (t) => {
  const secret = 'very-secret-token-of-somebody'
  const stage = await startStage({
    server(req, res) {
      if (req.url !== '/mcp' || req.headers.authorization === undefined) return false
      res
        .writeHead(401, {
          'www-authenticate': `Bearer error="invalid_token", error_description="${secret} is wrong"`,
        })
        .end()
      return true
    },
  })
  t.teardown(() => stage.close())
  for (const output of ['text', 'json']) {
    const { code, stdout } = await runGatehouse(
      ['doctor', stage.url, '--token-file', '-', '-o', output],
      `${secret}\n`,
    )
    t.equal(code, 1)
    t.match(stdout, 'initialize.token')
    t.match(stdout, '[redacted] is wrong')
    t.notMatch(stdout, secret)
  }
})

await t.test('endless, deeply nested and slow responses end within the limits', async (t) => {
  const dripping = new Set<NodeJS.Timeout>()
  const responses: Readonly<Record<string, (res: ServerResponse) => void>> = {
    'a stream without an end': (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      const timer = setInterval(() => res.write(': still here\n\n'), 10)
      dripping.add(timer)
      res.on('close', () => clearInterval(timer))
    },
    'one event that never ends': (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(`data: ${'x'.repeat(1_000_000)}`)
    },
    'a hundred thousand levels': (res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    },
    'headers without an end': (res) => {
      res.socket?.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}`)
    },
    'no HTTP at all': (res) => {
      res.socket?.end('SSH-2.0-OpenSSH_9.9\r\n')
    },
  }
  t.teardown(() => {
    for (const timer of dripping) clearInterval(timer)
  })
  for (const [name, respond] of Object.entries(responses)) {
    const server = await startBare((_req, res) => respond(res))
    t.teardown(() => server.close())
    const target = new URL(`http://127.0.0.1:${server.port}/mcp`)
    const { findings } = await examineRemote({ target, timeoutMs: 1000 })
    t.match(
      findings.find(({ result }) => result === 'failed' || result === 'unknown'),
      { result: 'failed', hop: 'MCP endpoint', id: 'endpoint' },
      name,
    )
  }
})

await t.test('a long list of servers and scopes is truncated and shown on one line', async (t) => {
  const stage = await startStage({
    resource: (document) => ({
      ...document,
      scopes_supported: Array.from({ length: 5000 }, (_, i) => `scope-${i}-${'x'.repeat(20)}`),
    }),
  })
  t.teardown(() => stage.close())
  const { findings } = await examineRemote({ target: new URL(stage.url) })
  const scopes = findings.find(({ id }) => id === 'scopes')
  t.match(scopes, { result: 'warning', code: 'scopes.unknown' })
  t.ok((scopes?.observed.length ?? 0) < 400)
})
