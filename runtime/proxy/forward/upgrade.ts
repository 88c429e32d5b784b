/**
 * Connects the two sockets of an accepted WebSocket upgrade as opaque byte streams. When one side ends, the other ends
 * too. Both sockets are closed when the caller's token expires or is revoked.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ProxyExchange } from '../model/exchange.ts'

/** Responds to the client's upgrade request with the target's response head, and starts the tunnel. */
export function acceptUpgrade(
  exchange: ProxyExchange,
  status: number,
  headers: IncomingHttpHeaders,
  target: Duplex,
): void {
  const { res, upgrade } = exchange
  if (!upgrade || !res.socket || upgrade.socket.destroyed) {
    target.destroy()
    return
  }
  const client = upgrade.socket
  res.detachSocket(res.socket)
  let head = `HTTP/1.1 ${status} Switching Protocols\r\n`
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) head += `${name}: ${one}\r\n`
  }
  client.write(`${head}\r\n`, 'latin1')
  if (upgrade.head.length > 0) target.write(upgrade.head)

  target.on('error', () => client.destroy())
  client.on('error', () => target.destroy())
  target.on('close', () => client.destroy())
  client.on('close', () => target.destroy())
  if (exchange.caller && exchange.callerStreams) {
    const stop = exchange.callerStreams.add(exchange.caller, () => {
      target.unpipe(client)
      client.end(() => client.destroy())
    })
    client.once('close', stop)
  }
  client.pipe(target)
  target.pipe(client)
}
