/**
 * Random but plausible sets of resources: some references lead somewhere, some do not.
 */
import fc from 'fast-check'
import { resource, type Stored } from './world.ts'

const names = fc.constantFrom('alpha', 'beta', 'gamma', 'delta.with.dots', `${'long-'.repeat(20)}name`)
const groups = fc.constantFrom('tools', 'other', 'missing')

const group = fc.constantFrom('tools', 'other').map((name) => resource('MCPGroup', name, {}))
const replicas = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined })

const server = fc
  .record({
    name: names,
    group: groups,
    transport: fc.constantFrom('streamable-http', 'sse', 'stdio'),
    replicas,
  })
  .map(({ name, group, transport, replicas }) =>
    resource('MCPServer', name, {
      image: 'registry.example/server:1',
      groupRef: { name: group },
      transport,
      ...(replicas !== undefined && { replicas, backendReplicas: replicas }),
    }),
  )

const entry = fc
  .record({
    name: names,
    group: groups,
    url: fc.constantFrom('https://a.example.com/mcp', 'http://10.0.0.1/mcp'),
  })
  .map(({ name, group, url }) =>
    resource('MCPServerEntry', name, {
      remoteUrl: url,
      transport: 'streamable-http',
      groupRef: { name: group },
      allowPrivateEndpoint: url.startsWith('http:'),
    }),
  )

const virtual = fc
  .record({ name: names, group: groups, source: fc.constantFrom('discovered', 'inline'), replicas })
  .map(({ name, group, source, replicas }) =>
    resource('VirtualMCPServer', name, {
      groupRef: { name: group },
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source },
      ...(replicas !== undefined && { replicas }),
    }),
  )

export function arbitraryResources(): fc.Arbitrary<Stored[]> {
  return fc.array(fc.oneof(group, server, entry, virtual), { maxLength: 12 })
}
