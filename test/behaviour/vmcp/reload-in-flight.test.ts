/**
 * Calls that stream, ask or wait while the configuration changes: the result of the call, the next call, notifications,
 * counters and audit lines. The expected values are in test/fixtures/vmcp/reload-in-flight.json.
 *
 * Each change is tested in all phases and both eras, and each phase in both eras. `make fuzz` tests all combinations.
 *
 *   node test/behaviour/vmcp/reload-in-flight.test.ts --update    rewrites them; review the diff
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type RecordedBackend, startRecordedBackend } from '../../helpers/recordings/backend.ts'
import { httpClient, isQuestion, isResult, type Message } from '../../helpers/recordings/clients.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless, type WireStream } from '../../helpers/mcp/wire.ts'
import { compareCells, isUpdate } from '../../helpers/vmcp/checks/expected.ts'
import { AuditReader, auditText, countersIn, growth, isOfRequest } from '../../helpers/vmcp/checks/ledger.ts'
import {
  type Change,
  changes,
  type Phase,
  type Settings,
  toolOf,
} from '../../helpers/vmcp/checks/reload-rows.ts'
import { startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'
import { deny, startWebhook } from '../../helpers/vmcp/webhook.ts'

t.setTimeout(300_000)

const eras = ['session', 'stateless'] as const
const phases: readonly Phase[] = ['streaming', 'asking', 'waiting']
const testsAll = Number(process.env['FC_RUNS'] ?? 300) > 300 || isUpdate()

interface Row {
  readonly era: (typeof eras)[number]
  readonly phase: Phase
  readonly change: Change
}

interface Peers {
  /** URLs of the backends. `moved` is the new address of `one`. */
  readonly urls: Readonly<Record<string, string>>
  readonly one: RecordedBackend
  /** Backend with prompts and without tools. */
  readonly marker: string
}

const isMethod =
  (method: string) =>
  (message: { readonly method?: string }): boolean =>
    message.method === method

/** Counters that depend on when the backends are listed again. */
const isOfLists = /type=(backend_health|backends_changed|lists_changed|tools_drifted)\}/

/** Params of the call. */
function callFor({ phase, change }: Row): readonly [name: string, args: Settings] {
  const tool = toolOf[phase]
  switch (change.via) {
    case 'call_tool':
      return ['call_tool', { tool_name: `one_${tool}`, parameters: {} }]
    case 'script':
      return ['execute_tool_script', { script: `return call_tool("one_${tool}")` }]
    case 'workflow':
      return [`flow_${tool}`, {}]
    default:
      return [`one_${tool}`, {}]
  }
}

function textOf({ result, error }: Message): string {
  const { _meta, ...shown } = result ?? error ?? {}
  return `${result ? 'result' : 'error'} ${JSON.stringify(shown)}`
    .replaceAll(/127\.0\.0\.1:\d+/g, '<host>')
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<uuid>')
}

/** True when the stream has announced changed tools before it announces changed prompts. */
async function toolsChanged(stream: WireStream): Promise<boolean> {
  await stream.next(isMethod('notifications/prompts/list_changed'))
  return stream.pending.some(isMethod('notifications/tools/list_changed'))
}

async function observe(t: Test, row: Row, { urls, one, marker }: Peers): Promise<unknown> {
  const { era, phase, change } = row
  const logFile = join(t.testdir({}), 'audit.log')
  const common = {
    audit: { enabled: true, logFile },
    telemetry: { enablePrometheusMetricsPath: true },
  }
  const configOf = (names: readonly string[], more: Settings = {}, backends: Settings = {}) =>
    vmcpConfig(
      {
        ...Object.fromEntries(names.map((name) => [name === 'moved' ? 'one' : name, urls[name] ?? ''])),
        ...(backends as Record<string, string>),
      },
      { ...common, ...more },
    )
  const vmcp = await startTestVmcp(
    { one: urls['one'] ?? '', two: urls['two'] ?? '' },
    { ...common, ...change.from },
  )
  const reader = new AuditReader(logFile)
  const watcher = await openSession(vmcp.url)
  const stream = await watcher.listen()
  t.teardown(async () => {
    stream.close()
    reader.close()
    await vmcp.close()
  })
  for (const list of ['tools/list', 'prompts/list']) await watcher.request(list)
  const client = await httpClient(vmcp.url, era)
  const counters = async () => countersIn(await (await fetch(`${vmcp.origin}/metrics`)).text())
  const before = await counters()
  reader.skip()

  const [name, args] = callFor(row)
  const arrived = phase === 'asking' ? undefined : one.waiting()
  // The response of a silent backend begins with its result.
  const called = client.call(name, { arguments: args })
  const question = phase === 'asking' ? await client.until(isQuestion) : undefined
  await arrived
  if (phase === 'streaming' && !change.via) await client.until(isMethod('notifications/progress'))
  vmcp.reload(configOf(change.backends ?? ['one', 'two'], change.to))
  if (question) await client.answer(question)
  else one.release()
  const result = await client.until(isResult)
  await called
  const next = await stateless(vmcp.url, 'tools/call', { name: 'one_plain', arguments: {} })
  const isLast = (line: Parameters<typeof isOfRequest>[0]): boolean =>
    isOfRequest(line) && String(line.target['name']).endsWith('plain')
  const audit = await reader.until(isLast)
  const after = await counters()
  vmcp.reload(configOf(change.backends ?? ['one', 'two'], change.to, { marker }))
  return {
    result: textOf(result),
    next: textOf(next.response),
    'tools/list_changed': await toolsChanged(stream),
    // The lines for `initialize` and `notifications/initialized` may be written late.
    audit: audit.filter(({ type }) => !/initialize|list|logging|notification/.test(type)).map(auditText),
    counters: growth(before, after).filter((line) => !isOfLists.test(line)),
  }
}

t.test('reload: calls in flight × changes of the configuration', async (t) => {
  const webhook = await startWebhook(() => deny('not now'))
  const backends = await Promise.all(
    ['one', 'two', 'three', 'moved'].map(
      async (name) => [name, await startRecordedBackend('session')] as const,
    ),
  )
  const marker = await startRawBackend({
    capabilities: '{"prompts":{}}',
    responses: {
      'prompts/list': () => '{"prompts":[{"name":"marker"}]}',
      'tools/list': () => '{"tools":[]}',
    },
  })
  t.teardown(() => Promise.all([webhook.close(), marker.close(), ...backends.map(([, one]) => one.close())]))
  const urls = Object.fromEntries(backends.map(([name, { url }]) => [name, url]))
  const one = backends[0]?.[1]
  if (!one) throw new Error('there is a backend')
  const cells: Record<string, unknown> = {}
  for (const [row, [title, change]] of Object.entries(changes(webhook)).entries())
    for (const [column, phase] of phases.entries())
      for (const era of testsAll ? eras : eras.filter((_, at) => (row + column + at) % 2 === 0)) {
        await t.test(`${era} client, ${phase}: ${title}`, async (t) => {
          cells[`${era} client, ${phase}: ${title}`] = await observe(
            t,
            { era, phase, change },
            { urls, one, marker: marker.url },
          )
        })
      }
  compareCells(t, 'reload-in-flight.json', cells, { isPart: !testsAll })
})
