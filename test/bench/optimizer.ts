/**
 * Measures tool search: the cost of an index, the longest blocked turn while it is built, and the cost of a search by
 * words, by meaning, and as a whole between the guards and the list. One core. `node test/bench/optimizer.ts`
 *
 * Word frequencies resemble those of real texts: few words are frequent, most are rare. Vectors have 384 numbers, like
 * those of small models. CPU time excludes other work of the machine; wall-clock times do not.
 */
import { JsonObject } from '../../runtime/mcp/index.ts'
import { makeCaller, silentLog } from '../../runtime/net/index.ts'
import { noTelemetry } from '../../runtime/observe/index.ts'
import { systemClock } from '../../runtime/vmcp/model/time/clock.ts'
import { makeOptimizer } from '../../runtime/vmcp/features/search/feature.ts'
import { nearest } from '../../runtime/vmcp/features/search/nearest.ts'
import { buildIndex, type ToolIndex } from '../../runtime/vmcp/features/search/tool-index.ts'
import type { VisibleTools } from '../../runtime/vmcp/features/search/visible-tools.ts'
import { searchWords } from '../../runtime/vmcp/features/search/words.ts'
import type { OperationClient } from '../../runtime/vmcp/model/session.ts'
import { ownOperation, type Perform } from '../../runtime/vmcp/model/operation.ts'

const DIMENSIONS = 384
const VOCABULARY = 3_000
const QUERIES = 500
/** Number of the most frequent words, which searches omit. */
const COMMON = 40

export interface OptimizerBenchRow {
  readonly name: string
  readonly tools: number
  /** Wall-clock time: the median, or the shortest for turns. */
  readonly ms: number
  /** Mean CPU time of this thread. Undefined when it is not meaningful. */
  readonly cpuMs: number | undefined
}

/** Returns the same numbers in every run. */
function makeRandom(): () => number {
  let state = 20_261_121
  return () => {
    state = (state * 16_807) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function makeTexts() {
  const random = makeRandom()
  const syllables = [
    'ka',
    'to',
    'ri',
    'me',
    'su',
    'lo',
    'ven',
    'dar',
    'pi',
    'gon',
    'shel',
    'bra',
    'qui',
    'nor',
    'ful',
  ]
  const syllable = () => syllables[Math.floor(random() * syllables.length)] ?? ''
  const vocabulary = Array.from(
    { length: VOCABULARY },
    () => syllable() + syllable() + syllable() + syllable(),
  )
  // The probability of a word decreases with its rank (Zipf).
  const word = () => vocabulary[Math.floor(Math.exp(random() * Math.log(VOCABULARY))) - 1] ?? ''
  const words = (count: number) => Array.from({ length: count }, word)
  const common = new Set(vocabulary.slice(0, COMMON))
  const task = () =>
    words(20)
      .filter((one) => !common.has(one))
      .slice(0, 6)
      .join(' ')
  return { random, words, task }
}

const { random, words, task } = makeTexts()

function visibleTools(count: number): VisibleTools {
  const tools = Array.from({ length: count }, (_, i) => ({
    name: `${words(3).join('_')}_${i}`,
    description: words(30).join(' '),
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(
        words(5).map((name) => [name, { type: 'string', description: words(6).join(' ') }]),
      ),
    },
  }))
  const pages: Buffer[] = []
  for (let from = 0; from < count; from += 1_000)
    pages.push(Buffer.from(JSON.stringify({ tools: tools.slice(from, from + 1_000) })))
  return { key: String(count), pages }
}

const vectorOf = () => Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5)

/** Prints the table. */
export async function run(): Promise<void> {
  for (const count of [100, 1_000, 4_000])
    for (const { name, tools, ms, cpuMs } of await measure(count))
      console.log(
        `  ${String(tools).padStart(5)} tools  ${name.padEnd(34)} ${ms.toFixed(3).padStart(9)} ms ${cpuMs === undefined ? '' : `${cpuMs.toFixed(3).padStart(9)} ms of the processor`}`,
      )
}

/** Returns the rows for one number of tools. */
export async function measure(tools: number): Promise<readonly OptimizerBenchRow[]> {
  const visible = visibleTools(tools)
  const turns: number[] = []
  const built: ToolIndex[] = []
  const build = await repeat(10, async () => {
    built.push(await watchingTurns(() => buildIndex(visible), turns))
    if (built.length > 1) built.shift()?.keywords.close()
  })
  const [index] = built
  if (!index) throw new Error('no index')
  const byWords = await repeat(QUERIES, () => index.keywords.search(searchWords(task(), []), 8))
  const vectors = Array.from({ length: tools }, vectorOf)
  const byMeaning = await repeat(QUERIES, () => nearest(vectorOf(), vectors, 1, 8))
  const find = finder(visible)
  await find()
  const whole = await repeat(QUERIES, find)
  index.keywords.close()
  return [
    { name: 'index: build', tools, ...build },
    { name: 'index: longest turn of a build', tools, ms: Math.min(...turns), cpuMs: undefined },
    { name: 'search by words', tools, ...byWords },
    { name: `search by meaning, ${DIMENSIONS} dimensions`, tools, ...byMeaning },
    { name: 'find_tool by words, list included', tools, ...whole },
  ]
}

/** Returns `find_tool` for a list that always consists of the same buffers, like the list of the catalog. */
function finder({ pages }: VisibleTools): () => Promise<unknown> {
  const listed = pages.map((page, i) =>
    i + 1 < pages.length ? new JsonObject(page).with({ nextCursor: JSON.stringify(String(i + 1)) }) : page,
  )
  const inside: Perform = ({ params }) =>
    Promise.resolve({
      kind: 'result',
      result: listed[Number(params.text('cursor') ?? 0)] ?? Buffer.from('{}'),
    })
  const settings = { maxTools: 8, semanticRatio: 0, maxDistance: 1, service: undefined }
  const { tools } = makeOptimizer(settings, {
    telemetry: noTelemetry,
    clock: systemClock,
    log: silentLog,
    observer: { attributeTo: () => {} },
    permits: () => Promise.resolve(true),
  })
  const { signal } = new AbortController()
  return async () => {
    const params = { name: 'find_tool', arguments: { tool_description: task() } }
    return tools[0]?.run(ownOperation(client, 'tools/call', params, signal), inside)
  }
}

const client: OperationClient = {
  era: 'session',
  protocolVersion: '2025-11-25',
  caller: makeCaller({ issuer: 'i', subject: 's', claims: { sub: 's' } }),
  abilities: {
    raw: Buffer.from('{}'),
    elicitation: false,
    sampling: false,
    roots: false,
    signature: '',
    extensions: new Set(),
  },
  info: undefined,
  headers: {},
  session: undefined,
}

function cpuNow(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Runs the work `times` times after a warm-up. */
async function repeat(
  times: number,
  work: () => unknown,
): Promise<{ readonly ms: number; readonly cpuMs: number }> {
  for (let i = 0; i < Math.ceil(times / 10); i++) await work()
  const taken: number[] = []
  const cpuAt = cpuNow()
  for (let i = 0; i < times; i++) {
    const startedAt = performance.now()
    await work()
    taken.push(performance.now() - startedAt)
  }
  const cpuMs = (cpuNow() - cpuAt) / times
  return { ms: taken.toSorted((a, b) => a - b)[Math.floor(times / 2)] ?? 0, cpuMs }
}

/** Measures the longest time without a turn for other work. */
async function watchingTurns<T>(work: () => Promise<T>, turns: number[]): Promise<T> {
  let last = performance.now()
  let longest = 0
  let over = false
  const tick = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!over) setImmediate(tick)
  }
  setImmediate(tick)
  try {
    return await work()
  } finally {
    over = true
    turns.push(longest)
  }
}

if (import.meta.main) await run()
