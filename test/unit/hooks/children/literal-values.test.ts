/**
 * Literal values of a resource reach its containers unchanged. Kubernetes expands `$(NAME)` and `$$` in values,
 * commands and arguments, so the hooks must escape everything that they write.
 */
import fc from 'fast-check'
import t from 'tap'
import { literalTemplate } from '../../../../hooks/children/literal.ts'
import type { PodTemplateSpec } from '../../../../hooks/children/pod.ts'
import { parseVmcpConfig } from '../../../../runtime/config/index.ts'
import { telemetrySettings } from '../../../../runtime/observe/telemetry/settings.ts'
import { makeOutgoingAuth } from '../../../../runtime/vmcp/backends/outgoing-auth.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { auth, entry, resource, server, virtual, world } from '../../../hooks/resources.ts'
import type { World } from '../../../hooks/world.ts'
import { expand } from '../../../../runtime/toolkit/local/pods.ts'

interface Running {
  readonly env: Readonly<Record<string, string>>
  readonly command: readonly string[]
  readonly args: readonly string[]
}

interface Written {
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly { name: string; value?: string; valueFrom?: object }[]
}

/** Returns the container as a kubelet starts it; values from references become `<secret>`. */
function started(container: Written): Running {
  const env: Record<string, string> = {}
  for (const { name, value, valueFrom } of container.env ?? [])
    env[name] = valueFrom ? '<secret>' : expand(value ?? '', env)
  const words = (list: readonly string[] = []) => list.map((word) => expand(word, env))
  return { env, command: words(container.command), args: words(container.args) }
}

function containerOf(w: World, kind: string, name: string): Running {
  const { template } = w.get(kind, name)['spec'] as { template: { spec: { containers: Written[] } } }
  return started(template.spec.containers[0] ?? {})
}

const tricky = ['pa$$word', '$(GATEHOUSE_BEARER_TOKEN_BEARER)', '$$(HOME)', '${HOME}', '$', '100%$', '$(HOME']

t.test('any text is preserved in values, commands and arguments', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('$', '(', ')', 'A', '{', 'x') }), { maxLength: 6 }),
      (texts) => {
        const template: PodTemplateSpec = {
          metadata: { labels: {} },
          spec: {
            containers: [
              {
                name: 'c',
                image: 'i',
                command: texts,
                args: texts,
                env: [{ name: 'A', value: 'known' }, ...texts.map((value, i) => ({ name: `V${i}`, value }))],
              },
            ],
          },
        }
        const run = started(literalTemplate(template).spec.containers[0] ?? {})
        return texts.every(
          (text, i) => run.env[`V${i}`] === text && run.args[i] === text && run.command[i] === text,
        )
      },
    ),
    { numRuns: 2_000, seed: 7 },
  )
})

t.test("headers of entries: a header value cannot expand another entry's secret", async (t) => {
  const addPlaintextHeaders = Object.fromEntries(tricky.map((text, i) => [`X-${i}`, text]))
  const w = world(
    auth.bearer,
    entry('bt', { externalAuthConfigRef: { name: 'bearer' } }),
    entry('alpha', { headerForward: { addPlaintextHeaders } }),
    virtual({}),
  ).ready()
  const { env } = containerOf(w, 'Deployment', 'vmcp-door')
  const outgoing = makeOutgoingAuth(env, undefined, silentLog)
  t.teardown(() => outgoing.close())
  t.strictSame(
    outgoing.headersFor('alpha', {}),
    Object.fromEntries(tricky.map((text, i) => [`x-${i}`, text])),
  )
})

t.test('servers: variables and arguments are literal, in the server and in its proxy', async (t) => {
  const env = tricky.map((value, i) => ({ name: `V${i}`, value }))
  const w = world(
    server('files', {
      transport: 'streamable-http',
      args: tricky,
      env,
      resourceOverrides: { proxyDeployment: { env } },
    }),
  ).ready()
  const expected = Object.fromEntries(env.map(({ name, value }) => [name, value]))
  const run = containerOf(w, 'StatefulSet', 'mcp-files-server')
  t.match(run.env, expected)
  t.strictSame(run.args, tricky)
  t.match(containerOf(w, 'Deployment', 'mcp-files-proxy').env, expected)
})

t.test('a podTemplateSpec is not escaped: Kubernetes expands its variables', async (t) => {
  const container = {
    name: 'mcp',
    args: ['--token=$(TOKEN)', 'pa$$word'],
    env: [{ name: 'TOKEN', value: 't' }],
  }
  const w = world(
    server('files', { transport: 'streamable-http', podTemplateSpec: { spec: { containers: [container] } } }),
  ).ready()
  t.strictSame(containerOf(w, 'StatefulSet', 'mcp-files-server').args, ['--token=t', 'pa$word'])
})

t.test('headers of telemetry: a header value cannot expand variables of the pod', async (t) => {
  const headers = Object.fromEntries(
    ['${GATEHOUSE_SESSION_REDIS_PASSWORD}', '$${HOME}', 'a$b', '${1}', '$$$${X}', '${'].map((text, i) => [
      `x-${i}`,
      text,
    ]),
  )
  const collector = { endpoint: 'https://otel.example', headers }
  const shared = resource('MCPTelemetryConfig', 'otel', {
    openTelemetry: {
      ...collector,
      enabled: true,
      tracing: { enabled: true },
      sensitiveHeaders: [{ name: 'x-key', secretKeyRef: { name: 'otel', key: 'key' } }],
    },
  })
  const own = virtual({ config: { telemetry: { ...collector, tracingEnabled: true } } })
  const referring = virtual({ telemetryConfigRef: { name: 'otel' } })
  for (const [w, more] of [
    [world(own).ready(), {}],
    [world(shared, referring).ready(), { 'x-key': 'secret' }],
  ] as const) {
    const files = w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>
    const { telemetry } = parseVmcpConfig(files['config.yaml'] ?? '')
    const env = { GATEHOUSE_OTEL_HEADER_X_KEY: 'secret', GATEHOUSE_SESSION_REDIS_PASSWORD: 'hush' }
    const settings = telemetrySettings(telemetry, { serverName: 'v', version: '1', env })
    t.strictSame(settings?.collector?.headers, { ...headers, ...more })
  }
})

t.test('an embedding server: model, variables and arguments are literal', async (t) => {
  const w = world(
    resource('EmbeddingServer', 'embed', {
      model: 'a/$(HOME)',
      args: ['$$', '$(HF_HOME)'],
      env: [{ name: 'V', value: 'pa$$word' }],
    }),
  ).ready()
  const run = containerOf(w, 'StatefulSet', w.list('StatefulSet')[0]?.metadata.name ?? '')
  t.match(run.env, { V: 'pa$$word', MODEL_ID: 'a/$(HOME)' })
  t.strictSame(run.args.slice(0, 2), ['--model-id', 'a/$(HOME)'])
  t.strictSame(run.args.slice(-2), ['$$', '$(HF_HOME)'])
})
