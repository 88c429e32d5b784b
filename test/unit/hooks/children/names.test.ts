import t from 'tap'
import {
  embeddingNames,
  remoteProxyNames,
  serverNames,
  virtualServerNames,
} from '../../../../hooks/children/names.ts'
import { isDnsLabel } from '../../../../schemas/index.ts'

const given = [
  'a',
  'a-remote',
  'a-server',
  'a-proxy',
  'a-vmcp',
  'a-server-headless',
  'mcp-a',
  'vmcp-a',
  'a.b',
  'a-b',
  'x'.repeat(253),
  `${'x'.repeat(252)}y`,
  `${'long.'.repeat(40)}end`,
  '1st',
]

t.test('names: two resources never have a child object with the same name', async (t) => {
  const owners = new Map<string, string>()
  const claim = (owner: string, kind: string, name: string) => {
    const key = `${kind} ${name}`
    t.ok((owners.get(key) ?? owner) === owner, `${key}: ${owner} and ${owners.get(key)}`)
    owners.set(key, owner)
  }
  for (const name of given) {
    const server = serverNames(name)
    claim(`MCPServer ${name}`, 'Deployment', server.proxy)
    claim(`MCPServer ${name}`, 'StatefulSet', server.server)
    for (const service of [server.proxy, server.server, server.headless])
      claim(`MCPServer ${name}`, 'Service', service)
    for (const map of [server.proxyConfig, server.serverConfig]) claim(`MCPServer ${name}`, 'ConfigMap', map)
    const proxy = remoteProxyNames(name)
    for (const kind of ['Deployment', 'Service']) claim(`MCPRemoteProxy ${name}`, kind, proxy.proxy)
    claim(`MCPRemoteProxy ${name}`, 'ConfigMap', proxy.proxyConfig)
    const virtual = virtualServerNames(name)
    for (const kind of ['Deployment', 'Service']) claim(`VirtualMCPServer ${name}`, kind, virtual.server)
    for (const map of [virtual.config, virtual.report]) claim(`VirtualMCPServer ${name}`, 'ConfigMap', map)
    const embedding = embeddingNames(name)
    for (const kind of ['StatefulSet', 'Service']) claim(`EmbeddingServer ${name}`, kind, embedding.server)
  }
})

t.test(
  'names: every Service name is a DNS label that starts with a letter, and StatefulSet names leave space for revisions',
  async (t) => {
    for (const name of given) {
      const { proxy, server, headless } = serverNames(name)
      for (const service of [
        proxy,
        server,
        headless,
        remoteProxyNames(name).proxy,
        virtualServerNames(name).server,
      ]) {
        t.ok(isDnsLabel(service) && /^[a-z]/.test(service), service)
      }
      t.ok(server.length <= 52 && embeddingNames(name).server.length <= 52)
    }
  },
)
