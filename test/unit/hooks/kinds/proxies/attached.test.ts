/**
 * MCPServer of transport stdio without a command: the proxy attaches to the server and has access to that one pod only.
 */
import t from 'tap'
import { validateRuntime } from '../../../../../schemas/index.ts'
import { server, world } from '../../../../hooks/resources.ts'
import { testSettings, World } from '../../../../hooks/world.ts'
import { condition, fileOf, podOf, statusOf } from './proxy-response.ts'

const stdio = { transport: 'stdio' }
const command = { spec: { containers: [{ name: 'mcp', command: ['node', 'server.js'] }] } }

t.test(
  'attached: the server runs as its image defines, with standard input open and no open port',
  async (t) => {
    const w = world(server('files', { ...stdio, args: ['/data'], mcpPort: 9000 })).settle()
    t.match(condition(w, 'MCPServer', 'files', 'StdioBridgeValid'), {
      status: 'True',
      reason: 'AttachedToEntrypoint',
    })
    t.match(condition(w, 'MCPServer', 'files', 'SharedProcess'), { status: 'True' })
    const [container] = podOf(w, 'StatefulSet', 'mcp-files-server').spec.containers
    t.strictSame(
      Object.keys(container ?? {}).sort(),
      ['args', 'image', 'name', 'securityContext', 'stdin'],
      'no port, no probe, no command',
    )
    t.match(container, { args: ['/data'], stdin: true })
    t.equal(w.find('Service', 'mcp-files-server'), undefined)
    t.equal(w.find('Service', 'mcp-files-server-headless'), undefined)
    t.notOk(
      'ingress' in (w.get('NetworkPolicy', 'mcp-files-server')['spec'] as object),
      'no incoming connection is allowed',
    )
  },
)

t.test('attached: a pod template cannot make the server exit when the first attachment ends', async (t) => {
  const own = { spec: { containers: [{ name: 'mcp', stdinOnce: true, tty: true, stdin: false }] } }
  const w = world(server('files', { ...stdio, podTemplateSpec: own })).settle()
  const [container] = podOf(w, 'StatefulSet', 'mcp-files-server').spec.containers
  t.match(container, { stdin: true, stdinOnce: undefined, tty: undefined })
})

t.test(
  'attached: the role allows reading and attaching to one pod, and only one container has the token',
  async (t) => {
    const w = world(server('files', stdio)).settle()
    t.strictSame(w.get('Role', 'mcp-files-proxy')['rules'], [
      { apiGroups: [''], resources: ['pods'], resourceNames: ['mcp-files-server-0'], verbs: ['get'] },
      {
        apiGroups: [''],
        resources: ['pods/attach'],
        resourceNames: ['mcp-files-server-0'],
        verbs: ['get', 'create'],
      },
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['mcp-files-attach-status'],
        verbs: ['get', 'patch'],
      },
    ])
    t.match(w.get('RoleBinding', 'mcp-files-proxy'), {
      subjects: [{ kind: 'ServiceAccount', name: 'mcp-files-proxy' }],
    })
    const { spec } = podOf(w, 'Deployment', 'mcp-files-proxy')
    t.equal(spec.automountServiceAccountToken, false)
    const mounts = spec.containers.map(({ name, ...rest }) => [
      name,
      JSON.stringify(rest).includes('serviceaccount'),
    ])
    t.strictSame(mounts, [
      ['gatehouse', false],
      ['attach', true],
    ])
    t.match(w.get('Deployment', 'mcp-files-proxy')['spec'], {
      replicas: 1,
      strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    })
  },
)

t.test("attached: the runtime's file is valid, and its ports do not collide", async (t) => {
  for (const proxyPort of [8080, 15_080, 15_081]) {
    const w = world(server('files', { ...stdio, proxyPort, proxyMode: 'sse' })).settle()
    const file = fileOf(w, 'mcp-files-server-config')
    t.strictSame(validateRuntime('proxy', file).violations, [])
    const { port, attach } = file as { port: number; attach: { healthPort: number } }
    t.equal(new Set([proxyPort, port, attach.healthPort]).size, 3)
    t.match(fileOf(w, 'mcp-files-proxy-config'), { targetUri: `http://127.0.0.1:${port}`, transport: 'sse' })
  }
})

t.test('attached: a server with a command has no role and no token', async (t) => {
  const w = world(server('files', { ...stdio, podTemplateSpec: command })).settle()
  t.match(condition(w, 'MCPServer', 'files', 'StdioBridgeValid'), { status: 'True', reason: 'CommandGiven' })
  t.equal(condition(w, 'MCPServer', 'files', 'SharedProcess'), undefined)
  t.equal(w.find('Role', 'mcp-files-proxy'), undefined)
  t.notMatch(JSON.stringify(podOf(w, 'Deployment', 'mcp-files-proxy')), 'serviceaccount')
  const before = w.get('StatefulSet', 'mcp-files-server')['spec'] as { serviceName: string }
  w.apply(server('files', stdio)).settle()
  t.ok(w.find('Role', 'mcp-files-proxy'))
  t.match(
    w.get('StatefulSet', 'mcp-files-server')['spec'],
    { serviceName: before.serviceName },
    'cannot be changed',
  )
  w.apply(server('files', { ...stdio, podTemplateSpec: command })).settle()
  t.equal(w.find('Role', 'mcp-files-proxy'), undefined, 'removed again')
})

t.test('attached: an installation with attaching disabled reports the required setting', async (t) => {
  const w = new World({ ...testSettings, stdioAttach: false }).apply(server('files', stdio)).settle()
  t.match(condition(w, 'MCPServer', 'files', 'StdioBridgeValid'), {
    status: 'False',
    reason: 'AttachDisabled',
    message: /GATEHOUSE_STDIO_ATTACH.+name mcp, command/,
  })
  t.match(condition(w, 'MCPServer', 'files', 'Stalled'), { status: 'True', reason: 'AttachDisabled' })
  t.equal(w.find('Role', 'mcp-files-proxy'), undefined)
  t.match(statusOf(w, 'MCPServer', 'files'), { phase: 'Failed', message: /GATEHOUSE_STDIO_ATTACH/ })
})

t.test('attached: without a cluster, the server requires a local command', async (t) => {
  const w = new World({ ...testSettings, localCommands: true }).apply(server('files', stdio)).settle()
  t.match(statusOf(w, 'MCPServer', 'files'), { phase: 'Failed', message: /gatehouse\.dev\/local-command/ })
  t.match(condition(w, 'MCPServer', 'files', 'StdioBridgeValid'), {
    status: 'False',
    reason: 'LocalCommandMissing',
  })
  t.match(condition(w, 'MCPServer', 'files', 'Stalled'), { status: 'True', reason: 'LocalCommandMissing' })
  const annotated = server('files', stdio)
  annotated.metadata.annotations = { 'gatehouse.dev/local-command': 'npx server' }
  w.apply(annotated).settle()
  t.match(statusOf(w, 'MCPServer', 'files'), { phase: 'Pending' })
  t.match(condition(w, 'MCPServer', 'files', 'StdioBridgeValid'), { status: 'True' })
})

t.test('attached: the report of the proxy becomes the condition Attached', async (t) => {
  const told = (report: unknown) => {
    const w = world(server('files', stdio)).ready()
    w.setData('mcp-files-attach-status', { 'attach.json': JSON.stringify(report) }).settle()
    return w
  }
  const state = (w: World) => condition(w, 'MCPServer', 'files', 'Attached')
  t.match(state(world(server('files', stdio)).settle()), { status: 'Unknown', reason: 'NotReported' })
  t.match(state(told({ attached: true, reason: 'Attached', message: 'm' })), { status: 'True' })
  const crashing = told({ attached: false, reason: 'CrashLoopBackOff', message: 'see kubectl logs' })
  t.match(state(crashing), { status: 'False', reason: 'CrashLoopBackOff', message: 'see kubectl logs' })
  for (const wrong of [7, {}, { attached: 'yes' }, { attached: true, reason: 'no reason', message: 'm' }])
    t.match(state(told(wrong)), { status: 'Unknown' })
})

t.test(
  'attached: a problem that requires an operator sets Failed and Stalled, and creates an Event',
  async (t) => {
    const w = world(server('files', stdio)).settle()
    const revisionIs = (updateRevision: string) => {
      const { generation } = w.get('StatefulSet', 'mcp-files-server').metadata
      w.setStatus('StatefulSet', 'mcp-files-server', { observedGeneration: generation, updateRevision })
    }
    const tell = (revision?: string) => {
      const report = { attached: false, reason: 'ImagePullBackOff', message: 'check the name of the image' }
      const text = JSON.stringify({ ...report, revision })
      w.setData('mcp-files-attach-status', { 'attach.json': text }).settle()
    }
    const stalled = () => condition(w, 'MCPServer', 'files', 'Stalled')
    const isStalled = { status: 'True', reason: 'ImagePullBackOff', message: 'check the name of the image' }
    const events = () => {
      const request = w.request('MCPServer', 'files')
      const hook = w.hooks.byKind('MCPServer')
      return hook?.events(request, hook.sync(request)).map(({ reason }) => reason)
    }
    revisionIs('one')
    tell('one')
    t.match(statusOf(w, 'MCPServer', 'files'), { phase: 'Failed', message: 'check the name of the image' })
    t.match(stalled(), isStalled)
    t.equal(condition(w, 'MCPServer', 'files', 'Reconciling'), undefined)
    t.strictSame(events(), ['ImagePullBackOff'])

    w.apply(server('files', { ...stdio, image: 'example/mended:1' })).settle()
    t.equal(stalled(), undefined, 'the new template has not been seen yet')
    revisionIs('two')
    w.settle()
    t.equal(stalled(), undefined, 'the report is from a pod of the previous template')
    t.match(statusOf(w, 'MCPServer', 'files'), { phase: 'Pending' })
    t.strictSame(events(), [])
    tell('two')
    t.match(stalled(), isStalled)

    tell()
    t.match(stalled(), isStalled, 'a report without a revision')
    w.ready()
    t.equal(stalled(), undefined, 'nothing while clients are served')
  },
)

t.test('attached: the proxy and the server always have one replica', async (t) => {
  const w = world(server('files', { ...stdio, replicas: 3, backendReplicas: 4 })).settle()
  t.match(w.get('Deployment', 'mcp-files-proxy')['spec'], { replicas: 1 })
  t.match(w.get('StatefulSet', 'mcp-files-server')['spec'], { replicas: 1 })
  t.match(condition(w, 'MCPServer', 'files', 'StdioReplicaCapped'), {
    status: 'True',
    message: /replicas is capped at 1, backendReplicas is capped at 1/,
  })
})
