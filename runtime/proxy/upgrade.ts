/**
 * Joins the two sockets of an accepted WebSocket upgrade. From then on both are opaque byte streams; either side's end
 * ends the other.
 */
import type { Duplex } from 'node:stream'
import type { ProxyExchange } from './exchange.ts'
import type { RawHeaders } from './response-headers.ts'

/** Answers the client's upgrade with the target's own head and tunnels. */
export function acceptUpgrade(
  exchange: ProxyExchange,
  status: number,
  raw: RawHeaders,
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
  for (let i = 0; i < raw.length; i += 2) head += `${latin1(raw[i])}: ${latin1(raw[i + 1])}\r\n`
  client.write(`${head}\r\n`, 'latin1')
  if (upgrade.head.length > 0) target.write(upgrade.head)

  target.on('error', () => client.destroy())
  client.on('error', () => target.destroy())
  target.on('close', () => client.destroy())
  client.on('close', () => target.destroy())
  client.pipe(target)
  target.pipe(client)
}

function latin1(value: Buffer | string | undefined): string {
  return typeof value === 'string' ? value : (value?.toString('latin1') ?? '')
}
