/**
 * The client address behind proxies: only proxies that the operator named are trusted, and the header is read from the
 * right.
 */
import t from 'tap'
import { parseNetwork } from '../../../runtime/config/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { redirectUri, type Rig, startAuthServer } from '../../helpers/authserver/authserver.ts'

async function sourceOf(rig: Rig, forwarded: string | undefined, more: object = {}): Promise<string> {
  await fetch(`${rig.issuer}/oauth/register`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }),
      ...more,
    },
    body: JSON.stringify({ redirect_uris: [redirectUri] }),
  })
  return rig.events.at(-1)?.source ?? ''
}

t.test('addresses: without trusted proxies, every forwarding header is ignored', async (t) => {
  const rig = await startAuthServer(t)
  t.equal(await sourceOf(rig, '198.51.100.7'), '127.0.0.1')
  t.equal(
    await sourceOf(rig, undefined, { forwarded: 'for=198.51.100.7', 'x-real-ip': '1.2.3.4' }),
    '127.0.0.1',
  )
})

t.test('addresses: a trusted proxy that is not the peer has no effect', async (t) => {
  const rig = await startAuthServer(t, { config: { trustedProxies: ['10.0.0.0/8', '::1'] } })
  t.equal(await sourceOf(rig, '198.51.100.7'), '127.0.0.1')
})

t.test('addresses: the header is read from the right, as far as trusted proxies reach', async (t) => {
  const rig = await startAuthServer(t, {
    config: { trustedProxies: ['127.0.0.0/8', '10.0.0.0/8', 'fd00::/8'] },
  })
  for (const [header, expected] of [
    ['198.51.100.7', '198.51.100.7'],
    ['192.0.2.66, 198.51.100.7', '198.51.100.7'],
    ['192.0.2.66, 198.51.100.7, 10.1.2.3', '198.51.100.7'],
    ['198.51.100.7:51234', '198.51.100.7'],
    ['[2001:db8::7]:443, fd00::1', '2001:db8::7'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
    ['198.51.100.7, ::ffff:10.1.2.3', '198.51.100.7'],
    ['10.9.9.9', '10.9.9.9'],
    ['198.51.100.7, unknown', '127.0.0.1'],
    ['198.51.100.7, <script>, 10.1.2.3', '10.1.2.3'],
    ['', '127.0.0.1'],
    [Array.from({ length: 40 }, () => '10.0.0.1').join(','), '10.0.0.1'],
  ] as const) {
    t.equal(await sourceOf(rig, header), expected, header)
  }
})

t.test('addresses: rate limits count each client behind the proxy separately', async (t) => {
  const rig = await startAuthServer(t, {
    store: makeMemoryStore({ now: () => 0 }),
    config: { trustedProxies: ['127.0.0.1'] },
  })
  const register = async (from: string): Promise<number> =>
    (
      await fetch(`${rig.issuer}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': from },
        body: JSON.stringify({ redirect_uris: [redirectUri] }),
      })
    ).status
  const flood = await Promise.all(
    Array.from({ length: 33 }, (_, n) => register(`192.0.2.${n}, 198.51.100.7`)),
  )
  t.equal(flood.filter((status) => status === 429).length, 3, 'invented hops to the left have no effect')
  t.equal(await register('198.51.100.8'), 201, 'another client is not limited')
})

t.test('addresses: an invalid network is rejected at the start', async (t) => {
  const bad = [
    '',
    '10.0.0.0/33',
    '::1/129',
    '10.0.0.0/0',
    '10.0.0/8',
    'proxy.example',
    'fe80::1%eth0',
    '10.0.0.0/8/8',
    '*',
  ]
  for (const text of bad) t.equal(parseNetwork(text), undefined, text)
  await t.rejects(startAuthServer(t, { config: { trustedProxies: ['*', '10.0.0.0/0'] } }), {
    code: 'INVALID_CONFIG',
    message: /trusted proxies: "\*".*trusted proxies: "10\.0\.0\.0\/0"/,
  })
})
