/**
 * Measures the cost of tool pinning and shadow policies: CPU time of a virtual server per call, compared with a server
 * without them.
 *
 * All servers are warm, on one core, and take turns of a few calls, in reverse order every second time, so that other
 * work of the machine affects them equally. Turns are summed into rounds, and a figure is the median of the ratios of
 * the rounds. Equal processes differ by a few percent for their whole life. Each figure is therefore compared with the
 * mean of two equal processes, and their ratio is printed: a figure that is not further from 1 has no meaning. `node
 * test/bench/main.ts pinning`
 */
import { reached } from './aims.ts'
import { BenchClient, callOf, requestOf, type Sent } from './vmcp/client.ts'
import { type Peer, pinSelf, startBackends, startServer, stopAll } from './vmcp/rig.ts'
import { progress, quantile, sorted, table } from './vmcp/table.ts'

const TOOLS = 100
/** The tools before this one have special behavior. */
const FIRST_PLAIN = 5
const AT_ONCE = 16
const WARM_UP_CALLS = 8_000
const CALLS = 80
const TURNS = 10
const ROUNDS = 25

const permit = ['permit(principal, action, resource);']
/** Ten policies that apply to calls. They would deny every call of their tools. */
const shadow = Array.from(
  { length: 10 },
  (_, at) =>
    `forbid(principal, action == Action::"call_tool", resource == Tool::"b0_tool_${FIRST_PLAIN + at * 7}");`,
)
/** A decision that depends on arguments is not cached, so each call repeats it. */
const readsArguments = 'context has arg_text && context.arg_text like "secret*"'
const forbid = `forbid(principal, action, resource) when { ${readsArguments} };`

const authz = (policies: readonly string[], more: object = {}) => ({
  incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies, ...more } },
})

/** The measured server, its reference, and the name of the figure. */
const compared = [
  ['plain again', 'plain'],
  ['policies again', 'policies'],
  ['pinning, everything as approved', 'plain', 'pinning'],
  ['shadow policies', 'policies', 'shadowPolicies'],
  ['pinning and shadow policies', 'policies', 'pinningAndShadow'],
  ['a shadow policy of arguments', 'a policy of arguments'],
] as const

interface Measured {
  readonly name: string
  readonly server: Peer
  readonly client: BenchClient
  readonly requests: readonly Sent[]
  /** CPU time of a call, by round. */
  readonly micros: number[]
}

/** Prints the table. */
export async function run(): Promise<void> {
  pinSelf()
  try {
    const backend = await startBackends({ tools: TOOLS })
    const locked = await lockOf(backend.url)
    const variants = {
      plain: {},
      'plain again': {},
      'pinning, everything as approved': locked,
      policies: authz(permit),
      'policies again': authz(permit),
      'shadow policies': authz(permit, { shadowPolicies: shadow }),
      'pinning and shadow policies': { ...locked, ...authz(permit, { shadowPolicies: shadow }) },
      'a policy of arguments': authz([...permit, forbid]),
      'a shadow policy of arguments': authz([...permit, forbid], { shadowPolicies: [forbid] }),
    }
    const servers: Measured[] = []
    for (const [name, config] of Object.entries(variants)) {
      progress(`${name}: warming up`)
      servers.push(await startVariant(name, backend, config))
    }
    for (let round = 0; round < ROUNDS; round++) {
      progress(`round ${round + 1} of ${ROUNDS}`)
      for (const { micros } of servers) micros.push(0)
      for (let turn = 0; turn < TURNS; turn++)
        for (const one of turn % 2 === 0 ? servers : servers.toReversed())
          one.micros[round] = (one.micros[round] ?? 0) + (await cpuOf(one)) / TURNS
    }
    console.log(`\n${report(servers)}`)
    await Promise.all(servers.map(({ client }) => client.close()))
  } finally {
    await stopAll()
  }
}

/** All listed items of the backend are approved. */
async function lockOf(url: string): Promise<object> {
  const client = new BenchClient(url)
  const { body } = await client.result(requestOf('session', 'tools/list'))
  await client.close()
  const { tools } = (JSON.parse(body) as { result: { tools: { name: string }[] } }).result
  const items = tools.map((tool) => ({ name: tool.name, definition: JSON.stringify(tool) }))
  return { pinning: { onChanged: 'block', onNew: 'block' }, toolLocks: [{ backend: 'b0', tools: items }] }
}

async function startVariant(name: string, backend: Peer, config: object): Promise<Measured> {
  const server = await startServer(backend.urls, { ...config })
  const client = new BenchClient(server.url, AT_ONCE)
  const sessions = await client.openSessions(AT_ONCE)
  const requests = Array.from({ length: TOOLS }, (_, at) =>
    callOf('session', at < FIRST_PLAIN ? 'b0_echo' : `b0_tool_${at}`, sessions[at % AT_ONCE]),
  )
  const measured = { name, server, client, requests, micros: [] }
  await callAll(measured, WARM_UP_CALLS)
  return measured
}

async function callAll({ client, requests }: Measured, calls: number): Promise<void> {
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < calls) {
      const request = requests[next++ % TOOLS]
      if (request) await client.result(request)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
}

/** CPU time of a call in one turn. */
async function cpuOf(measured: Measured): Promise<number> {
  const spent = async (): Promise<number> => (await measured.server.memory({ settle: false })).cpuMicros
  const before = await spent()
  await callAll(measured, CALLS)
  return ((await spent()) - before) / CALLS
}

function report(servers: readonly Measured[]): string {
  const micros = (name: string): readonly number[] => servers.find((one) => one.name === name)?.micros ?? []
  /** Returns the mean of a server and its twin, or the server alone as the reference of its twin. */
  const baseOf = (base: string, name: string): readonly number[] => {
    const [one, twin] = [micros(base), micros(`${base} again`)]
    return name.endsWith(' again') ? one : one.map((value, round) => (value + (twin[round] ?? value)) / 2)
  }
  const rows = compared.map(([name, base, aim]) => {
    const [own, without] = [micros(name), baseOf(base, name)]
    const ratios = sorted(own.map((one, round) => one / (without[round] ?? Number.NaN)))
    const median = quantile(ratios, 0.5)
    if (aim) reached(aim, (median - 1) * 100)
    const middle = `${quantile(ratios, 0.25).toFixed(3)} to ${quantile(ratios, 0.75).toFixed(3)}`
    return [name, quantile(sorted(own), 0.5), base, quantile(sorted(without), 0.5), median.toFixed(3), middle]
  })
  return table(['with', 'CPU µs/call', 'against', 'CPU µs/call', '**ratio**', 'middle half of rounds'], rows)
}

if (import.meta.main) await run()
