/**
 * The exact messages that clients and backends exchange with the virtual server, the proxy and the stdio bridge, for each
 * pair of protocol eras. The expected values are in test/fixtures/recordings.
 *
 *   node test/behaviour/recordings.test.ts --update    rewrites them; review the diff
 */
import t, { type Test } from 'tap'
import { parseTarget } from '../../runtime/config/proxy/target.ts'
import { startRig } from '../helpers/proxy/rig.ts'
import {
  type BackendKind,
  type RecordedBackend,
  startRecordedBackend,
} from '../helpers/recordings/backend.ts'
import {
  httpClient,
  isQuestion,
  isResult,
  type RecordingClient,
  sseClient,
  stdioClient,
} from '../helpers/recordings/clients.ts'
import { compareCells } from '../helpers/vmcp/checks/expected.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

type Scenario = (client: RecordingClient, backend: RecordedBackend) => Promise<void>

const isProgress = ({ method }: { readonly method?: string }): boolean => method === 'notifications/progress'

const scenarios: Readonly<Record<string, Scenario>> = {
  async 'plain call'(client) {
    await client.call('plain')
    await client.until(isResult)
  },
  async 'progress and log'(client) {
    await client.call('stream')
    await client.until(isResult)
  },
  async question(client) {
    await client.call('ask')
    await client.answer(await client.until(isQuestion))
    await client.until(isResult)
  },
  async cancel(client, backend) {
    await client.call('wait')
    await client.until(isProgress)
    const cancelled = backend.cancelled()
    await client.cancel()
    await cancelled
  },
  async 'resume after a broken stream'(client, backend) {
    await client.call('wait')
    await client.until(isProgress)
    await client.resume?.(() => backend.release())
  },
  async 'broken stream of the backend'(client) {
    await client.call('broken')
    await client.until(isResult)
  },
  async 'large result'(client) {
    await client.call('large')
    await client.until(isResult)
  },
}

type ClientKind = 'session' | 'stateless' | 'sse' | 'stdio session' | 'stdio stateless'

function connect(t: Test, kind: ClientKind, origin: string): Promise<RecordingClient> {
  switch (kind) {
    case 'sse':
      return sseClient(t, `${origin}/sse`)
    case 'stdio session':
      return stdioClient(t, origin, 'session')
    case 'stdio stateless':
      return stdioClient(t, origin, 'stateless')
    default:
      return httpClient(`${origin}/mcp`, kind)
  }
}

async function startVirtualServer(t: Test, kind: BackendKind, url: string): Promise<string> {
  const transport = kind === 'sse' ? 'sse' : 'streamable-http'
  const vmcp = await startTestVmcp({ one: { url, transport } }, { aggregation: bareNames('one') })
  t.teardown(() => vmcp.close())
  return vmcp.origin
}

async function startProxyOf(t: Test, kind: BackendKind, url: string): Promise<string> {
  const { origin, pathname: path } = new URL(url)
  const transport = kind === 'sse' ? 'sse' : 'streamable-http'
  const rig = await startRig(origin, { target: { ...parseTarget(origin), path, transport } })
  t.teardown(() => rig.close())
  return rig.url
}

interface Gateway {
  start(t: Test, kind: BackendKind, url: string): Promise<string>
  readonly pairs: readonly (readonly [client: ClientKind, backend: BackendKind])[]
}

const everyPair = <const Client extends ClientKind>(clients: readonly Client[]) =>
  clients.flatMap((client) =>
    (['session', 'stateless', 'sse'] as const).map((kind) => [client, kind] as const),
  )

const gateways: Readonly<Record<string, Gateway>> = {
  vmcp: { start: startVirtualServer, pairs: everyPair(['session', 'stateless', 'sse']) },
  /** The proxy does not translate between eras. */
  proxy: {
    start: startProxyOf,
    pairs: [
      ['session', 'session'],
      ['stateless', 'stateless'],
      ['sse', 'sse'],
    ],
  },
  stdio: {
    start: async (_t, _kind, url) => url,
    pairs: everyPair(['stdio session', 'stdio stateless']),
  },
}

function applies(title: string, gateway: string, client: RecordingClient, kind: BackendKind): boolean {
  if (title.startsWith('resume'))
    return client.resume !== undefined && (gateway === 'vmcp' || kind === 'session')
  return title !== 'broken stream of the backend' || (gateway === 'vmcp' && kind === 'session')
}

for (const [name, { start, pairs }] of Object.entries(gateways))
  t.test(`recordings: ${name}`, async (t) => {
    const cells: Record<string, unknown> = {}
    for (const [clientKind, kind] of pairs) {
      const backend = await startRecordedBackend(kind)
      t.teardown(() => backend.close())
      const client = await connect(t, clientKind, await start(t, kind, backend.url))
      await scenarios['plain call']?.(client, backend)
      for (const [title, scenario] of Object.entries(scenarios)) {
        if (!applies(title, name, client, kind)) continue
        await client.finish()
        client.tape.take()
        backend.tape.take()
        await scenario(client, backend)
        await client.finish()
        cells[`${clientKind} client × ${kind} backend: ${title}`] = {
          client: client.tape.take(),
          backend: backend.tape.take(),
        }
      }
    }
    compareCells(t, `../recordings/${name}.json`, cells)
  })
