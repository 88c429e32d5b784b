/**
 * Serves the kubelet's `attach` and `containerLogs` endpoints to the API server, for the streams and the output of local
 * containers. The node object reports the address and the WebSocket support.
 * Source: Kubernetes, pkg/kubelet/server (paths), KEP-4006.
 */
import { once } from 'node:events'
import { createServer } from 'node:https'
import { issueCertificate } from '../../../../hooks/certificates/issue.ts'
import { AttachServer, type ContainerStreams } from '../attach-server.ts'
import type { KubeApi } from './api.ts'

type Find = (namespace: string, pod: string, container: string) => ContainerStreams | undefined

/** Returns the output of a pod, or undefined when the pod does not run on this node. */
type LogsOf = (namespace: string, pod: string) => string | undefined

export async function startKubelet(
  api: KubeApi,
  nodeName: string,
  find: Find,
  logsOf: LogsOf,
): Promise<void> {
  const { certificate, key } = await issueCertificate({
    names: [nodeName],
    now: new Date(),
    lifetimeMs: 86_400_000,
  })
  const server = createServer({ cert: certificate, key }, ({ url = '/' }, res) => {
    const [verb = '', namespace = '', pod = ''] = new URL(url, 'https://node').pathname.slice(1).split('/')
    const logs = verb === 'containerLogs' ? logsOf(namespace, pod) : undefined
    res.writeHead(logs === undefined ? 404 : 200, { 'content-type': 'text/plain' }).end(logs)
  })
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
