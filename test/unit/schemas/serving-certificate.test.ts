/** Valid pairs of certificate and key, errors of the invalid ones, and reloading of changed files. */
import { createPrivateKey } from 'node:crypto'
import { rmSync } from 'node:fs'
import t from 'tap'
import {
  certificateEndsAt,
  pairViolations,
  ServedCertificate,
  serverName,
} from '../../../schemas/certificate/index.ts'
import type { PemPair } from '../../../schemas/certificate/pair.ts'
import { makeAuthority, mountSecret, secretOf } from '../../helpers/certificates.ts'

const names = { cert: 'tls.crt', key: 'tls.key' }
const authority = await makeAuthority()
const good = await authority.leaf()
const other = await authority.leaf()
const problems = (pair: PemPair) =>
  pairViolations(pair, names).map(({ path, message }) => `${path} ${message}`)

t.test('pairs of every common algorithm and encoding are accepted', async (t) => {
  for (const algorithm of ['ecdsa', 'rsa', 'ed25519'] as const)
    t.same(problems(await authority.leaf({ algorithm })), [], algorithm)
  t.same(problems({ ...good, cert: good.cert + authority.ca }), [], 'with its chain')
  t.same(problems({ ...good, cert: `Bag Attributes\n  x: y\n${good.cert}` }), [], 'with text around it')
  t.same(problems(await authority.leaf({ endsInMs: -1 })), [], 'an expired certificate is accepted')
  const key = createPrivateKey(good.key).export({ type: 'sec1', format: 'pem' }).toString()
  t.same(problems({ ...good, key }), [], 'SEC 1')
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
  t.same(problems({ ...good, key: parameters + key }), [], 'as openssl ecparam writes it')
  t.same(problems({ cert: good.cert.replaceAll('\n', '\r\n'), key: key.replaceAll('\n', '\r\n') }), [])
})

t.test("a client's pair may have any extended key usage, and its certificate comes first", async (t) => {
  const owner = 'client'
  for (const usage of ['clientAuth', 'serverAuth'] as const)
    t.same(pairViolations(await authority.leaf({ usage }), { ...names, owner }), [], usage)
  t.match(pairViolations({ ...good, key: other.key }, { ...names, owner }), [{ path: 'tls.key' }])
  t.match(pairViolations({ cert: authority.ca + good.cert, key: good.key }, { ...names, owner }), [
    { message: /the client's own certificate must come first$/ },
  ])
})

t.test('all problems of a pair are reported at once, without the key', async (t) => {
  const encrypted = createPrivateKey(good.key)
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'p' })
    .toString()
  const cases: readonly [Partial<PemPair>, readonly (string | RegExp)[]][] = [
    [{ cert: '', key: '' }, ['tls.crt contains no PEM certificate', 'tls.key contains no PEM private key']],
    [{ cert: good.key }, ['tls.crt contains no PEM certificate']],
    [{ key: good.cert }, ['tls.key contains no PEM private key']],
    [
      { cert: good.cert.replace('MII', 'MIX') },
      [/^tls\.crt contains a certificate that cannot be parsed, number 1$/],
    ],
    [
      { key: good.key.replace(/\n[^\n]{20}/, '\n!') },
      ['tls.key contains a private key that cannot be parsed'],
    ],
    [{ key: encrypted }, ['tls.key contains an encrypted private key: remove the passphrase']],
    [{ key: other.key }, ['tls.key is not the key of the certificate in tls.crt']],
    [
      { cert: authority.ca + good.cert },
      ["tls.key is the key of certificate number 2 in tls.crt: the server's own certificate must come first"],
    ],
    [
      await authority.leaf({ usage: 'clientAuth' }),
      ['tls.crt contains a certificate that is not valid for servers (extended key usage serverAuth)'],
    ],
    [
      await authority.leaf({ algorithm: 'rsa1024' }),
      ['tls.key contains an RSA key of 1024 bits: it must have 2048 or more'],
    ],
  ]
  for (const [change, expected] of cases) {
    const found = problems({ ...good, ...change })
    t.equal(found.length, expected.length, found.join('; '))
    expected.forEach((one, at) => t.match(found[at], one))
    for (const line of found) t.ok(line.length < 200, 'no content')
  }
})

t.test('the names of a certificate are read', async (t) => {
  const leaf = await authority.leaf({ names: ['a.team.svc.cluster.local', '*.b.team.svc'] })
  t.ok(serverName(leaf.cert, 'a.team.svc.cluster.local'))
  t.ok(serverName(leaf.cert, 'x.b.team.svc'))
  t.notOk(serverName(leaf.cert, 'c.team.svc.cluster.local'))
  t.notOk(serverName('no certificate', 'a'))
})

t.test('files: changes are loaded, and the last valid pair stays in use', async (t) => {
  const files = mountSecret(secretOf(good))
  const told: string[] = []
  const given: unknown[] = []
  const certificate = new ServedCertificate(files, {
    onReloaded: () => told.push('reloaded'),
    onUnusable: (reason) => told.push(reason),
  })
  t.teardown(() => certificate.close())
  certificate.follow({ setSecureContext: ({ cert }) => given.push(cert) })
  t.equal(certificate.reload(), false, 'nothing has changed')
  files.write(secretOf(other))
  t.equal(certificate.reload(), true)
  t.same(given, [other.cert])
  t.same(told.splice(0), ['reloaded'])
  files.write(secretOf({ ...good, key: other.key }))
  t.equal(certificate.reload(), false)
  t.equal(certificate.reload(), false)
  t.match(told.splice(0), [/tls\.key: is not the key of the certificate in .*tls\.crt/], 'reported once')
  files.write(secretOf(await authority.leaf({ endsInMs: -1_000 })))
  t.equal(certificate.reload(), false)
  t.match(told.splice(0), [/tls\.crt: the certificate has already expired/])
  t.same(given, [other.cert])
  t.equal(certificate.options.cert, other.cert)
  files.write(secretOf(other))
  t.equal(certificate.reload(), true, 'the previous pair is reported as valid again')
  rmSync(files.certFile)
  t.equal(certificate.reload(), false, 'missing for a moment')
  t.equal(certificate.endsAt > Date.now(), true)
  t.equal(certificateEndsAt(files), undefined)
})

t.test('files: an expired certificate is used at the start, because there is no alternative', async (t) => {
  const ended = await authority.leaf({ endsInMs: -1_000 })
  const files = mountSecret(secretOf(ended))
  const certificate = new ServedCertificate(files)
  t.teardown(() => certificate.close())
  t.ok(certificate.endsAt < Date.now())
  files.write(secretOf(await authority.leaf({ endsInMs: -500 })))
  t.equal(certificate.reload(), true, 'an expired certificate can be replaced by another')
  files.write(secretOf(good))
  t.equal(certificate.reload(), true)
})

t.test('files: all problems at the start are reported', async (t) => {
  t.throws(() => new ServedCertificate({ certFile: '/no/crt', keyFile: '/no/key' }), {
    code: 'INVALID_CONFIG',
    message: /\/no\/crt: the file cannot be read\n\/no\/key: the file cannot be read/,
  })
  const files = mountSecret({ ...secretOf(good), 'ca.crt': good.cert })
  t.throws(() => new ServedCertificate({ ...files, clientCaFile: files.caFile }), {
    code: 'INVALID_CONFIG',
    message: /ca\.crt: contains no CA certificate/,
  })
})
