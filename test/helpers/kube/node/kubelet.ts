/**
 * Serves the kubelet's `attach` endpoint to the API server, for the streams of local containers. The node object
 * reports its address and its WebSocket support. Source: Kubernetes, pkg/kubelet/server (paths), KEP-4006.
 */
import { once } from 'node:events'
import { createServer } from 'node:https'
import { issueCertificate } from '../../../../hooks/certificates/issue.ts'
import { AttachServer, type ContainerStreams } from '../attach-server.ts'
import type { KubeApi } from './api.ts'

type Find = (namespace: string, pod: string, container: string) => ContainerStreams | undefined

export async function startKubelet(api: KubeApi, nodeName: string, find: Find): Promise<void> {
  const { certificate, key } = await issueCertificate({
    names: [nodeName],
    now: new Date(),
    lifetimeMs: 86_400_000,
  })
  const server = createServer({ cert: certificate, key }, (_req, res) => res.writeHead(404).end())
  const attach = new AttachServer()
  server.on('upgrade', (request, socket, head) => {
    const { pathname } = new URL(request.url ?? '/', 'https://node')
    const [verb = '', namespace = '', pod = '', container = ''] = pathname.slice(1).split('/')
    const streams = verb === 'attach' ? find(namespace, pod, container) : undefined
    if (streams) attach.upgrade(request, socket, head, streams)
    else attach.refuse(socket, 404, `container ${container} of pod ${pod} does not run here`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  await api.send('PATCH', `/api/v1/nodes/${nodeName}/status`, {
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      declaredFeatures: ['ExtendWebSocketsToKubelet'],
    },
  })
}
