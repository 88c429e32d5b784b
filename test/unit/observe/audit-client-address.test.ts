/** The client address in the audit log. X-Forwarded-For counts only behind trusted proxies, and only from the right. */
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { clientAddress } from '../../../runtime/observe/exchange/reporter.ts'

function request(peer: string, forwardedFor?: string | string[]): IncomingMessage {
  const facts = { socket: { remoteAddress: peer }, headers: { 'x-forwarded-for': forwardedFor } }
  return facts as unknown as IncomingMessage
}

t.test('client address: the peer, unless proxies are trusted', async (t) => {
  t.equal(clientAddress(request('198.18.0.9', '8.8.8.8'), { trustProxyHeaders: false }), '198.18.0.9')
  t.equal(clientAddress(request('::ffff:10.0.0.1'), { trustProxyHeaders: false }), '10.0.0.1')
})

t.test('client address: the last address that is not a trusted proxy', async (t) => {
  for (const [header, expected] of [
    ['8.8.8.8', '8.8.8.8'],
    ['1.1.1.1, 8.8.8.8, 10.0.0.7', '8.8.8.8'],
    ['8.8.8.8:4711', '8.8.8.8'],
    ['[2606:4700::1]:443, 192.168.1.1', '2606:4700::1'],
    ['10.1.1.1, 10.0.0.7', '10.1.1.1'],
    ['unknown', '10.0.0.1'],
    ['8.8.8.8, forged\r\n, 10.0.0.7', '10.0.0.7'],
    ['', '10.0.0.1'],
  ] as const) {
    t.equal(clientAddress(request('10.0.0.1', header), { trustProxyHeaders: true }), expected, header)
  }
  t.equal(clientAddress(request('10.0.0.1', ['1.1.1.1', '8.8.8.8']), { trustProxyHeaders: true }), '8.8.8.8')
  t.equal(clientAddress(request('10.0.0.1'), { trustProxyHeaders: true }), '10.0.0.1')
})
