/** A minimal TCP balancer: distributes connections over the replicas in turn, and skips a replica that refuses them. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Balancer {
  readonly url: string
  /** Target ports of new connections, used in turn. */
  ports: readonly number[]
  close(): void
}

export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>()
  let turn = 0
  const server = createServer({ noDelay: true }, (client) => {
    open.add(client)
    client.once('close', () => open.delete(client))
    client.on('error', () => client.destroy())
    join(client, balancer.ports.length)
  })

  function join(client: Socket, attempts: number): void {
    const port = balancer.ports[turn++ % balancer.ports.length]
    if (port === undefined || attempts === 0) {
      client.destroy()
      return
    }
    const replica = connect({ port, host: '127.0.0.1', noDelay: true })
    replica.once('error', () => {
      if (replica.connecting || !connected) join(client, attempts - 1)
      else client.destroy()
    })
    let connected = false
    replica.once('connect', () => {
      connected = true
      open.add(replica)
      replica.once('close', () => {
        open.delete(replica)
        client.destroy()
      })
      replica.on('error', () => client.destroy())
      client.once('close', () => replica.destroy())
      client.pipe(replica)
      replica.pipe(client)
    })
  }

  server.listen(0, '127.0.0.1')
  const balancer: Balancer = {
    url: '',
    ports,
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(balancer, { url: `http://127.0.0.1:${port}/mcp` })
}
