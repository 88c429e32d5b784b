/** Golden cases of servers with several pods and of servers with a public host name. */
import { redis, remote, secret, server, virtual, world } from './resources.ts'
import { servingCertificate } from './serving-certificate.ts'
import type { Stored, World } from './world.ts'

type Request = Record<string, unknown>

const asked = (kind: string, name: string) => (w: World) => w.request(kind, name)
const door = asked('VirtualMCPServer', 'door')
const files = asked('MCPServer', 'files')
const crm = asked('MCPRemoteProxy', 'crm')
const running = (...objects: Stored[]) => world(...objects).ready()

const autoscaling = { minReplicas: 2, maxReplicas: 6 }

const exposure = {
  hostname: 'tools.example.com',
  ingress: {
    className: 'nginx',
    tlsSecretName: 'tools-tls',
    annotations: { 'cert-manager.io/issuer': 'public' },
  },
}
const tls = { tls: { secretName: 'inside-tls' } }
const inside = secret('inside-tls', servingCertificate)
const certificate = secret('tools-tls', { 'tls.crt': 'c', 'tls.key': 'k' })

export const dayTwo: Record<string, () => Request> = {
  'VirtualMCPServer/replicas': () => door(running(virtual({ replicas: 3, ...redis }))),
  'VirtualMCPServer/autoscaled': () =>
    door(running(virtual({ autoscaling: { ...autoscaling, targetCPU: 60, targetSessions: 200 }, ...redis }))),
  'VirtualMCPServer/own-spread': () =>
    door(
      running(
        virtual({
          podTemplateSpec: {
            spec: {
              topologySpreadConstraints: [
                {
                  maxSkew: 2,
                  topologyKey: 'topology.kubernetes.io/zone',
                  whenUnsatisfiable: 'DoNotSchedule',
                  labelSelector: { matchLabels: { app: 'virtualmcpserver' } },
                },
              ],
              containers: [{ name: 'vmcp', lifecycle: { preStop: { exec: { command: ['/drain'] } } } }],
            },
          },
        }),
      ),
    ),
  'MCPServer/replicas': () =>
    files(
      running(
        server('files', {
          replicas: 2,
          backendReplicas: 2,
          ...redis,
          resourceOverrides: {
            proxyDeployment: {
              podTemplateSpec: {
                spec: {
                  priorityClassName: 'gateways',
                  containers: [{ name: 'gatehouse', resources: { requests: { cpu: '200m' } } }],
                },
              },
            },
          },
        }),
      ),
    ),
  'MCPServer/autoscaled': () => files(running(server('files', { autoscaling, ...redis }))),
  'MCPServer/stdio-autoscaled': () => files(running(server('files', { transport: 'stdio', autoscaling }))),
  'VirtualMCPServer/exposed': () => door(running(certificate, virtual({ exposure }))),
  'VirtualMCPServer/gateway-not-enabled': () =>
    door(running(virtual({ exposure: { hostname: 'tools.example.com', gateway: { name: 'public' } } }))),
  'MCPServer/hostname-claimed': () =>
    files(running(certificate, remote('crm', { exposure }), server('files', { exposure }))),
  'MCPRemoteProxy/exposed': () =>
    crm(running(remote('crm', { exposure: { hostname: 'crm.example.com', ingress: {} } }))),
  'VirtualMCPServer/tls': () =>
    door(running(inside, certificate, server('files', tls), remote('crm'), virtual({ ...tls, exposure }))),
  'VirtualMCPServer/tls-secret-missing': () => {
    const w = running(virtual())
    return door(w.apply(virtual(tls)))
  },
  'MCPServer/tls': () => files(running(inside, server('files', tls))),
  'MCPServer/tls-pair-broken': () => {
    const w = running(inside, server('files', tls))
    return files(w.apply(secret('inside-tls', { ...servingCertificate, 'tls.key': 'no key' })))
  },
  'MCPRemoteProxy/tls': () => crm(running(inside, remote('crm', tls))),
  'MCPRemoteProxy/autoscaled': () => crm(running(remote('crm', { autoscaling, ...redis }))),
}
