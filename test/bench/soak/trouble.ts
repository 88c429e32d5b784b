/**
 * Causes the failures of real operation: a backend is killed and restarted, another one is added to and removed from
 * the configuration, lists change very often, requests to the user stay open, and untrusted clients send invalid input.
 * After each of them, the virtual server must recover within a fixed time.
 */
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { post, stateless } from '../../helpers/mcp/wire.ts'
import { requireStatus, resultOf, toolText } from './checks.ts'
import { Unexpected } from './ledger.ts'
import type { BackendProcess } from './processes.ts'
import type { Shaky, Soak } from './types.ts'

/** Time for recovery after a backend has come back or the configuration has changed. */
const HEAL_MS = 30_000

export interface TroubleOptions {
  readonly configFile: string
  /** Returns the configuration with or without the temporary backend. */
  readonly config: ({ withEpsilon }: { readonly withEpsilon: boolean }) => string
  readonly startGamma: () => Promise<BackendProcess>
  readonly startEpsilon: () => Promise<BackendProcess>
  readonly setShaky: (backend: Shaky, { shaky }: { readonly shaky: boolean }) => void
}

export async function writeConfig(file: string, text: string): Promise<void> {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

/** Runs `work` repeatedly, with random pauses around `everyMs`. */
async function again(soak: Soak, everyMs: number, work: () => Promise<void>): Promise<void> {
  while (!soak.over()) {
    const until = Date.now() + everyMs * (0.5 + Math.random())
    while (Date.now() < until && !soak.over()) await setTimeout(250)
    if (!soak.over()) await work()
  }
}

async function responses(soak: Soak, tool: string): Promise<boolean> {
  const { response } = await stateless(soak.url, 'tools/call', { name: tool, arguments: {} })
  return response?.result !== undefined && response.result['isError'] !== true
}

async function heal(soak: Soak, what: string, healed: () => Promise<boolean>): Promise<void> {
  await soak.ledger.run(what, async () => {
    const until = Date.now() + HEAL_MS
    while (!(await healed())) {
      if (Date.now() > until) throw new Unexpected(`not within ${HEAL_MS} ms`)
      await setTimeout(250)
    }
  })
}

/** Starts all kinds of trouble. Each promise resolves when the soak ends. */
export function makeTrouble(soak: Soak, options: TroubleOptions): Promise<void>[] {
  return [killing(soak, options), reconfiguring(soak, options), storms(soak), leaving(soak), hostile(soak)]
}

async function killing(soak: Soak, { startGamma, setShaky }: TroubleOptions): Promise<void> {
  const healed = async (): Promise<void> => {
    await heal(soak, 'trouble: a killed backend serves again', () => responses(soak, 'gamma_echo'))
    // Health checks and circuit breaker need a few checks before every call succeeds again.
    await setTimeout(HEAL_MS / 2)
    setShaky('gamma', { shaky: false })
  }
  let gamma = await startGamma()
  await healed()
  await again(soak, 90_000, async () => {
    setShaky('gamma', { shaky: true })
    await gamma.kill()
    await setTimeout(Math.random() * 15_000)
    gamma = await startGamma()
    await healed()
  })
  await gamma.kill()
}

async function reconfiguring(soak: Soak, options: TroubleOptions): Promise<void> {
  const { configFile, config, startEpsilon, setShaky } = options
  let epsilon: BackendProcess | undefined
  await again(soak, 60_000, async () => {
    setShaky('epsilon', { shaky: true })
    if (epsilon) {
      await writeConfig(configFile, config({ withEpsilon: false }))
      await heal(
        soak,
        'trouble: a removed backend is gone',
        async () => !(await responses(soak, 'epsilon_echo')),
      )
      await epsilon.kill()
      epsilon = undefined
    } else {
      epsilon = await startEpsilon()
      await writeConfig(configFile, config({ withEpsilon: true }))
      await heal(soak, 'trouble: an added backend serves', () => responses(soak, 'epsilon_echo'))
      setShaky('epsilon', { shaky: false })
    }
  })
  await epsilon?.kill()
}

/** After twenty announcements at once, the list must be correct. */
async function storms(soak: Soak): Promise<void> {
  await again(soak, 20_000, async () => {
    let there = false
    await soak.ledger.run('trouble: storm', async () => {
      const { response } = await stateless(soak.url, 'tools/call', { name: 'alpha_storm', arguments: {} })
      there = toolText(response) === 'true'
      for (const name of ['beta_test_trigger_tool_change', 'beta_test_trigger_resource_update'])
        toolText((await stateless(soak.url, 'tools/call', { name, arguments: {} })).response)
    })
    await heal(soak, 'trouble: the list is right after a storm', async () => {
      const { tools } = resultOf(await stateless(soak.url, 'tools/list')) as { tools: { name: string }[] }
      return tools.some(({ name }) => name === 'alpha_extra') === there
    })
  })
}

/**
 * Leaves requests to the user open forever. The interval keeps their number below the limit of a hundred per caller.
 */
async function leaving(soak: Soak): Promise<void> {
  await again(soak, 20_000, async () => {
    await soak.ledger.run('trouble: a question is left open', async () => {
      const options = { capabilities: { elicitation: {} } }
      const asked = await stateless(soak.url, 'tools/call', { name: 'alpha_ask', arguments: {} }, options)
      if (resultOf(asked)['resultType'] !== 'input_required') throw new Unexpected(asked.text.slice(0, 200))
    })
  })
}

async function hostile(soak: Soak): Promise<void> {
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const attacks: readonly (readonly [string, () => Promise<void>])[] = [
    ['bad JSON', async () => requireStatus(await post(soak.url, '{"jsonrpc":"2.0",'), 400)],
    ['batch', async () => requireStatus(await post(soak.url, `[${ping}]`), 400)],
    ['no session id', async () => requireStatus(await post(soak.url, ping), 400)],
    [
      'forged session id',
      async () => requireStatus(await post(soak.url, ping, { 'mcp-session-id': crypto.randomUUID() }), 404),
    ],
    ['oversize', () => oversize(soak)],
    [
      'forged state',
      async () => {
        const params = { name: 'alpha_ask', arguments: {}, requestState: 'x'.repeat(500), inputResponses: {} }
        requireStatus(await stateless(soak.url, 'tools/call', params), 400)
      },
    ],
    [
      'header and body disagree',
      async () => {
        const headers = { 'mcp-name': 'other' }
        requireStatus(
          await stateless(soak.url, 'tools/call', { name: 'alpha_echo', arguments: {} }, { headers }),
          400,
        )
      },
    ],
    ['unknown tool', () => unknownTool(soak)],
  ]
  let next = 0
  await again(soak, 2_000, async () => {
    const attack = attacks[next++ % attacks.length]
    if (attack) await soak.ledger.run(`hostile: ${attack[0]}`, attack[1])
  })
}

/** While a list that may contain the tool is read, the response stays open as an event stream. */
async function unknownTool(soak: Soak): Promise<void> {
  const response = await stateless(soak.url, 'tools/call', { name: 'nobody_knows' })
  requireStatus(response, 400, 200)
  if (!response.text.includes('not found')) throw new Unexpected(response.text.slice(0, 200))
}

/**
 * Sends more than the server reads, on its own connection. The server responds with 413, or disconnects during the
 * transfer.
 */
async function oversize(soak: Soak): Promise<void> {
  const body = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'x'.repeat(9 * 1024 * 1024)}"}}`
  const headers = { 'content-type': 'application/json' }
  const sending = request(soak.url, { method: 'POST', headers, agent: false })
  const responded = once(sending, 'response').catch(() => undefined)
  sending.end(body)
  const [response] = ((await responded) ?? []) as IncomingMessage[]
  response?.resume().on('error', () => {})
  sending.destroy()
  if (response && response.statusCode !== 413) throw new Unexpected(`${response.statusCode} instead of 413`)
}
