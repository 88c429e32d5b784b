/**
 * The scenarios behind the golden cases: `<Kind>/<case>` -> the request of one sync.
 */
import { resource, World } from './world.ts'

type Request = Record<string, unknown>

const group = resource('MCPGroup', 'tools', { description: 'All tools of the team' })
const server = (name: string, spec: object = {}) =>
  resource('MCPServer', name, {
    groupRef: { name: 'tools' },
    image: `registry.example/${name}:1`,
    transport: 'streamable-http',
    ...spec,
  })
const entry = (name: string, spec: object = {}) =>
  resource('MCPServerEntry', name, {
    groupRef: { name: 'tools' },
    remoteUrl: `https://${name}.example.com/mcp`,
    transport: 'streamable-http',
    ...spec,
  })
const virtual = (spec: object = {}) =>
  resource('VirtualMCPServer', 'door', {
    groupRef: { name: 'tools' },
    incomingAuth: { type: 'anonymous' },
    ...spec,
  })

/** The request of a first sync, before anything exists. */
function first(kind: string, name: string, world: World): Request {
  return world.request(kind, name)
}

export const cases: Readonly<Record<string, () => Request>> = {
  'MCPGroup/empty': () => first('MCPGroup', 'tools', new World().apply(group)),
  'MCPGroup/members': () =>
    first(
      'MCPGroup',
      'tools',
      new World().apply(group, server('files'), server('everything'), entry('search')),
    ),
  'MCPGroup/duplicate-names': () =>
    first('MCPGroup', 'tools', new World().apply(group, server('files'), entry('files'))),

  'MCPServerEntry/valid': () =>
    first('MCPServerEntry', 'search', new World().apply(group, entry('search')).settle()),
  'MCPServerEntry/group-missing': () => first('MCPServerEntry', 'search', new World().apply(entry('search'))),
  'MCPServerEntry/loopback-address': () =>
    first(
      'MCPServerEntry',
      'search',
      new World().apply(group, entry('search', { remoteUrl: 'http://127.0.0.1/mcp' })),
    ),

  'MCPServer/minimal': () => first('MCPServer', 'files', new World().apply(group, server('files'))),
  'MCPServer/running': () => first('MCPServer', 'files', new World().apply(group, server('files')).ready()),
  'MCPServer/bad-pod-template-keeps-children': () =>
    first(
      'MCPServer',
      'files',
      new World()
        .apply(group, server('files'))
        .ready()
        .apply(server('files', { podTemplateSpec: { spec: { containers: 'none' } } })),
    ),

  'VirtualMCPServer/minimal': () =>
    first('VirtualMCPServer', 'door', new World().apply(group, virtual()).settle()),
  'VirtualMCPServer/discovered': () =>
    first(
      'VirtualMCPServer',
      'door',
      new World().apply(group, server('files'), entry('search'), virtual()).ready(),
    ),
  'VirtualMCPServer/inline': () =>
    first(
      'VirtualMCPServer',
      'door',
      new World()
        .apply(
          group,
          server('files'),
          virtual({
            outgoingAuth: { source: 'inline' },
            config: {
              backends: [
                {
                  name: 'legacy',
                  url: 'https://legacy.example.com/sse',
                  transport: 'sse',
                  metadata: { group: 'x' },
                },
              ],
            },
          }),
        )
        .ready(),
    ),
  'VirtualMCPServer/group-missing-keeps-children': () =>
    first(
      'VirtualMCPServer',
      'door',
      new World().apply(group, server('files'), virtual()).ready().remove('MCPGroup', 'tools'),
    ),
}
