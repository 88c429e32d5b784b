/** Client certificates for backends: a real TLS server that requires one, before and after a rotation. */
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as forward } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { validateResource } from '../../../hooks/index.ts'
import { loadProxyFile, resolveProxyFile } from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { formatViolations, validateRuntime } from '../../../schemas/index.ts'
import { makeAuthority, mountSecret, secretOf } from '../../helpers/certificates.ts'
import { startPassingTime } from '../../helpers/outgoing/passing-time.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

/** A TLS server in front of a backend. It records the serial number of each client certificate. */
async function rig(t: Test) {
  const pass = startPassingTime(t)
  const authority = await makeAuthority()
  const { cert, key } = await authority.leaf()
  const serials: string[] = []
  const backend = await startRawBackend({ responses: { 'tools/call': () => textResult('welcome') } })
  const server = createServer(
    { cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: true },
    (req, res) => {
      serials.push((req.socket as TLSSocket).getPeerCertificate().serialNumber)
      const { method, headers, url = '' } = req
      const onwards = forward(new URL(url, backend.url), { method, headers }, (response) => {
        res.writeHead(response.statusCode ?? 500, response.headers)
        response.pipe(res)
      })
      onwards.on('error', () => res.destroy())
      req.pipe(onwards)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  t.teardown(async () => {
    server.close()
    server.closeAllConnections()
    await backend.close()
  })
  const leaves = [
    await authority.leaf({ usage: 'clientAuth' }),
    await authority.leaf({ usage: 'clientAuth' }),
  ]
  const [first, second] = leaves
  if (!first || !second) throw new Error('no certificates')
  const mounted = mountSecret(secretOf(first, authority.ca))
  /** Replaces the files, ends all connections and lets the interval between two checks pass. */
  const rotate = (files: Record<string, string>) => {
    mounted.write(files)
    server.closeAllConnections()
    pass(10_000)
  }
  const url = `https://127.0.0.1:${port}${new URL(backend.url).pathname}`
  return { url, serials, mounted, rotate, first, second, ca: authority.ca }
}

t.test('virtual server: a backend that requires a certificate, before and after a rotation', async (t) => {
  const { url, serials, mounted, rotate, first, second, ca } = await rig(t)
  const files = { clientCertificatePath: mounted.certFile, clientKeyPath: mounted.keyFile }
  const trust = { type: 'entry', caBundlePath: mounted.caFile }
  const warnings: unknown[] = []
  const log = {
    ...silentLog,
    warn: (message: string, fields?: unknown) => void warnings.push([message, fields]),
  }
  const vmcp = await startTestVmcp({ mutual: { url, ...trust, ...files } }, {}, { log })
  t.teardown(() => vmcp.close())
  const call = () => stateless(vmcp.url, 'tools/call', { name: 'mutual_echo' })
  t.match((await call()).text, 'welcome')
  t.same(
    new Set(serials),
    new Set([first.serialNumber]),
    'no connection without the certificate gets through',
  )

  serials.length = 0
  rotate({ 'tls.crt': second.cert, 'tls.key': first.key, 'ca.crt': ca })
  t.match((await call()).text, 'welcome')
  t.same(new Set(serials), new Set([first.serialNumber]), 'an unfinished rotation keeps the last pair')
  const notReloaded = () => warnings.filter((line) => /not reloaded/.test(JSON.stringify(line)))
  t.match(notReloaded(), [
    [/certificates not reloaded/, { reason: /key does not belong to the certificate/ }],
  ])
  rotate({ 'tls.crt': second.cert, 'tls.key': first.key, 'ca.crt': ca })
  t.match((await call()).text, 'welcome')
  t.equal(notReloaded().length, 1, 'one warning for one reason')

  serials.length = 0
  rotate(secretOf(second, ca))
  t.match((await call()).text, 'welcome')
  t.same(new Set(serials), new Set([second.serialNumber]))
})

t.test('virtual server: backends with the same trust anchors do not share a certificate', async (t) => {
  const { url, serials, mounted, first } = await rig(t)
  const files = { clientCertificatePath: mounted.certFile, clientKeyPath: mounted.keyFile }
  const trust = { type: 'entry', caBundlePath: mounted.caFile }
  const vmcp = await startTestVmcp({ mutual: { url, ...trust, ...files }, plain: { url, ...trust } })
  t.teardown(() => vmcp.close())
  await stateless(vmcp.url, 'tools/list')
  const status: unknown = await (await fetch(`${new URL(vmcp.url).origin}/status`)).json()
  t.match(status, {
    backends: [
      { name: 'mutual', health: 'healthy' },
      { name: 'plain', last_error: { category: 'connection_failed' } },
    ],
  })
  t.same(new Set(serials), new Set([first.serialNumber]))
})

t.test('virtual server: unusable settings exclude the backend', async (t) => {
  const { url, mounted, first, second, ca } = await rig(t)
  const files = { clientCertificatePath: mounted.certFile, clientKeyPath: mounted.keyFile }
  const backend = { url, type: 'entry', caBundlePath: mounted.caFile, ...files }
  const encrypted = createPrivateKey(first.key).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'x',
  })
  for (const [file, content, problem] of [
    ['tls.key', second.key, /mutual\.clientKeyPath: the key does not belong to the certificate/],
    ['tls.key', String(encrypted), /mutual\.clientKeyPath: .* without a passphrase/],
    ['tls.key', first.cert, /mutual\.clientKeyPath: .*contains no private key/],
    ['tls.crt', first.key, /mutual\.clientCertificatePath: .*contains no PEM certificate/],
  ] as const) {
    mounted.write({ ...secretOf(first, ca), [file]: content })
    const vmcp = await startTestVmcp({ mutual: backend })
    t.teardown(() => vmcp.close())
    t.match(await (await fetch(`${new URL(vmcp.url).origin}/status`)).text(), problem)
  }
})

t.test('proxy: the target requires a certificate, before and after a rotation', async (t) => {
  const { url, serials, mounted, rotate, first, second, ca } = await rig(t)
  const directory = mkdtempSync(join(tmpdir(), 'client-certificate-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'proxy.yaml')
  const targetTls = { clientCertificatePath: mounted.certFile, clientKeyPath: mounted.keyFile }
  writeFileSync(
    path,
    stringify({ name: 'crm', targetUri: url, targetCaBundlePath: mounted.caFile, targetTls }),
  )
  const config = resolveProxyFile('crm', loadProxyFile(path), { host: '127.0.0.1', port: '0' }, {})
  const proxy = await runProxy(config, { log: silentLog, notify() {} })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  await proxy.ready
  const call = () => stateless(`${proxy.url}/mcp`, 'tools/call', { name: 'echo' })
  t.match((await call()).text, 'welcome')
  rotate(secretOf(second, ca))
  t.match((await call()).text, 'welcome')
  t.same(new Set(serials), new Set([first.serialNumber, second.serialNumber]))
  await t.rejects(
    runProxy(
      { ...config, targetTls: { ...targetTls, clientKeyPath: '/gone' } },
      { log: silentLog, notify() {} },
    ),
    { code: 'INVALID_CONFIG', message: /targetTls\.clientKeyPath: the file \/gone cannot be read/ },
  )
})

t.test('manifests and files: a certificate needs https and its key', (t) => {
  const manifest = (kind: string, spec: object) =>
    formatViolations(
      validateResource({
        apiVersion: 'gatehouse.dev/v1beta1',
        kind,
        metadata: { name: 'crm', namespace: 'team' },
        spec: { clientCertificateSecretRef: { name: 'client' }, ...spec },
      }).violations,
    )
  const entry = { groupRef: { name: 'tools' }, transport: 'streamable-http' }
  for (const [kind, more] of [
    ['MCPServerEntry', entry],
    ['MCPRemoteProxy', {}],
  ] as const) {
    t.equal(manifest(kind, { remoteUrl: 'https://crm.example.com/mcp', ...more }), '')
    t.match(
      manifest(kind, { remoteUrl: 'http://crm.example.com/mcp', ...more }),
      /^spec\.clientCertificateSecretRef: .*needs an https remoteUrl/,
    )
  }
  const proxy = (more: object) =>
    formatViolations(
      validateRuntime('proxy', { name: 'crm', targetUri: 'https://crm.example.com/mcp', ...more }).violations,
    )
  const targetTls = { clientCertificatePath: '/tls.crt', clientKeyPath: '/tls.key' }
  t.equal(proxy({ targetTls }), '')
  t.match(
    proxy({ targetTls, targetUri: 'http://crm.example.com/mcp' }),
    /targetTls: .*needs an https targetUri/,
  )
  t.match(proxy({ targetTls: { clientKeyPath: '/tls.key' } }), /clientCertificatePath: is required/)
  t.match(proxy({ targetTls: { clientCertificatePath: '/tls.crt' } }), /clientKeyPath: is required/)
  const vmcp = (more: object) =>
    formatViolations(
      validateRuntime('vmcp', {
        name: 'door',
        groupRef: 'tools',
        incomingAuth: { type: 'anonymous' },
        outgoingAuth: { source: 'inline' },
        aggregation: {},
        backends: [{ name: 'crm', url: 'https://crm.example.com', transport: 'streamable-http', ...more }],
      }).violations,
    )
  t.equal(vmcp(targetTls), '')
  t.match(vmcp({ clientKeyPath: '/tls.key' }), /must be set together/)
  t.match(vmcp({ clientCertificatePath: '/tls.crt' }), /must be set together/)
  t.match(vmcp({ ...targetTls, url: 'http://crm.example.com' }), /clientCertificatePath needs an https URL/)
  t.end()
})
