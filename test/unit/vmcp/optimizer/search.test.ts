/** Semantic search against a real embedding service: errors, recovery, changed models, and cached vectors. */
import t, { type Test } from 'tap'
import { silentLog } from '../../../../runtime/net/index.ts'
import type { Clock } from '../../../../runtime/vmcp/model/time/clock.ts'
import { type Found, ToolSearch } from '../../../../runtime/vmcp/features/search/search.ts'
import { searchSettings } from '../../../../runtime/vmcp/features/search/settings.ts'
import type { VisibleTools } from '../../../../runtime/vmcp/features/search/visible-tools.ts'
import type { Optimizer } from '../../../../schemas/index.ts'
import {
  type EmbeddingService,
  type Failure,
  startEmbeddingService,
} from '../../../helpers/vmcp/embedding-service.ts'

const TOOLS = {
  weather: 'Forecast for a place',
  tides: 'Height of the water in a port',
  convert: 'Changes money of one currency into another',
  send: 'Sends a message to somebody',
  issue: 'Opens an issue',
}

function visible(tools: Readonly<Record<string, string>>): VisibleTools {
  const page = { tools: Object.entries(tools).map(([name, description]) => ({ name, description })) }
  return { key: JSON.stringify(page), pages: [Buffer.from(JSON.stringify(page))] }
}

/** A clock that stands still until a test moves it. Timers run in the order of their time. */
function stillClock(): Clock & { readonly pending: number[]; move(ms: number): void } {
  let now = 1_000_000
  const due = new Map<() => void, number>()
  return {
    now: () => now,
    after(ms, work) {
      due.set(work, now + ms)
      return () => void due.delete(work)
    },
    get pending() {
      return [...due.values()].map((at) => at - now)
    },
    move(ms) {
      now += ms
      for (const [work, at] of due) {
        if (at > now) continue
        due.delete(work)
        work()
      }
    },
  }
}

const DEFAULTS: Optimizer = {
  embeddingProvider: 'tei',
  embeddingServiceTimeout: '5s',
  hybridSearchSemanticRatio: '0.5',
  maxToolsToReturn: 3,
  semanticDistanceThreshold: '0.95',
}

interface Rig {
  readonly service: EmbeddingService
  readonly search: ToolSearch
  readonly clock: ReturnType<typeof stillClock>
  find(description: string, tools?: Readonly<Record<string, string>>): Promise<Found>
}

async function start(t: Test, config: Partial<Optimizer> = {}): Promise<Rig> {
  const service = await startEmbeddingService({ synonyms: { rain: 'forecast', euros: 'money' } })
  const clock = stillClock()
  const base = config.embeddingProvider === 'compat' ? `${service.url}/v1` : service.url
  const settings = searchSettings({ ...DEFAULTS, embeddingService: base, embeddingModel: 'm', ...config }, {})
  const search = new ToolSearch({ settings, hidden: new Set(), clock, log: silentLog })
  t.teardown(() => Promise.all([search.close(), service.close()]))
  const { signal } = new AbortController()
  return {
    service,
    search,
    clock,
    find: (description, tools = TOOLS) => search.find(visible(tools), { description, keywords: [] }, signal),
  }
}

const names = ({ tools }: Found): string[] => tools.map(({ name }) => name)
const ofTools = ({ texts }: { readonly texts: readonly string[] }): boolean =>
  texts[0]?.startsWith('name: ') ?? false

const FAULTS: readonly (readonly [string, Failure, ('tei' | 'compat')?])[] = [
  ['cuts the connection', { kind: 'cut' }],
  ['answers 500', { kind: 'status', status: 500 }],
  ['answers 429', { kind: 'status', status: 429 }],
  ['answers 401', { kind: 'status', status: 401 }],
  ['answers 301', { kind: 'status', status: 301 }],
  ['answers with too few vectors', { kind: 'count' }],
  ['answers with too few vectors', { kind: 'count' }, 'compat'],
  ['returns one index twice', { kind: 'index' }, 'compat'],
  ['returns an invalid number', { kind: 'numbers' }],
  ['returns text that is not JSON', { kind: 'text' }],
  ['answers without end', { kind: 'huge' }],
]

for (const [what, failure, embeddingProvider = 'tei'] of FAULTS) {
  t.test(`${embeddingProvider}: a service that ${what} fails no search, and is retried`, async (t) => {
    const { service, search, clock, find } = await start(t, { embeddingProvider })
    service.onRequest = () => failure
    t.same(await find('rain in port').then(names), ['tides'], 'by words')
    t.equal((await find('rain in port')).degraded, true)
    t.ok(search.degraded)
    const asked = service.requests.length
    await find('rain')
    t.equal(service.requests.length, asked, 'the search does not wait for it')
    service.onRequest = () => undefined
    while (search.degraded) {
      clock.move(60_000)
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    const found = await find('rain')
    t.equal(found.degraded, false)
    t.equal(names(found)[0], 'weather', 'semantic again')
  })
}

t.test('retries of a failing service are spaced further apart, up to a minute', async (t) => {
  const { service, clock, find } = await start(t)
  service.onRequest = () => ({ kind: 'status', status: 503 })
  await find('rain')
  for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    while (!clock.pending.includes(pause)) await new Promise<void>((resolve) => setImmediate(resolve))
    clock.move(pause)
  }
  t.pass('pauses grow up to a minute')
})

t.test('vectors are computed once, even for a set that shares some tools with another set', async (t) => {
  const { service, find } = await start(t)
  await Promise.all([find('rain'), find('euros'), find('rain')])
  const made = () => service.texts().filter((text) => text.startsWith('name: '))
  t.equal(made().length, Object.keys(TOOLS).length)
  const { weather, ...rest } = TOOLS
  t.same(names(await find('euros', rest)), ['convert'])
  t.equal(made().length, Object.keys(TOOLS).length, 'nothing new for fewer tools')
  t.same(names(await find('snow', { ...TOOLS, ski: 'Depth of snow' })), ['ski'])
  t.equal(made().length, Object.keys(TOOLS).length + 1, 'only the new one')
  t.ok(weather)
})

t.test('a model that changes while vectors are computed: all vectors are computed again', async (t) => {
  const { service, find } = await start(t)
  let changes = 1
  service.onRequest = (request) => {
    if (ofTools(request) && changes-- > 0) service.model = 'hash-2'
    return undefined
  }
  const found = await find('rain')
  t.equal(found.degraded, false)
  t.equal(names(found)[0], 'weather')
  service.onRequest = (request) => {
    if (ofTools(request)) service.model = `${service.model}+`
    return undefined
  }
  const again = await find('snow', { ...TOOLS, ski: 'Depth of snow' })
  t.equal(again.degraded, true, 'not a second time')
  t.same(names(again), ['ski'])
})

t.test('a model that changes between searches is detected, and vectors are computed again', async (t) => {
  const { service, clock, find } = await start(t)
  t.equal(names(await find('rain'))[0], 'weather')
  service.model = 'another'
  clock.move(31_000)
  const before = service.requests.length
  // The first search detects the change; a later search uses the new vectors.
  for (;;) {
    await find('rain')
    if (service.requests.slice(before).some(ofTools)) break
  }
  const found = await find('rain')
  t.equal(found.degraded, false)
  t.equal(names(found)[0], 'weather')
})

t.test(
  'query vectors of another length: the search uses words until the tool vectors are computed again',
  async (t) => {
    const { service, find } = await start(t)
    t.equal(names(await find('rain'))[0], 'weather')
    service.dimensions = 64
    const remade = service.next(ofTools)
    const found = await find('rain in port')
    t.equal(found.degraded, true)
    t.same(names(found), ['tides'])
    await remade
    for (;;) if (!(await find('rain')).degraded) break
    t.equal(names(await find('rain'))[0], 'weather')
  },
)

t.test('a service that does not report its model is used, but its vectors are not cached', async (t) => {
  const { service, find } = await start(t)
  service.model = undefined
  t.equal(names(await find('rain'))[0], 'weather')
  const { weather, ...rest } = TOOLS
  await find('rain', rest)
  const made = service.texts().filter((text) => text.startsWith('name: convert'))
  t.equal(made.length, 2)
  t.ok(weather)
})

t.test('searches wait only a few seconds for the vectors of a new set', async (t) => {
  const { service, clock, find } = await start(t)
  let release = (): void => {}
  const until = new Promise<void>((resolve) => (release = resolve))
  service.onRequest = (request) => (ofTools(request) ? { kind: 'slow', until } : undefined)
  const queried = service.next((request) => !ofTools(request))
  const first = find('rain in port')
  await queried
  while (!clock.pending.includes(5_000)) await new Promise<void>((resolve) => setImmediate(resolve))
  clock.move(5_000)
  t.match(await first, { degraded: true, tools: [{ name: 'tides' }] })
  t.equal((await find('rain in port')).degraded, true, 'the next search does not wait')
  release()
  for (;;) if (!(await find('rain')).degraded) break
  t.equal(names(await find('rain'))[0], 'weather', 'the vectors are used once they exist')
})

t.test('a client that disconnects ends its search and causes no failure of the service', async (t) => {
  const { service, search } = await start(t)
  let release = (): void => {}
  const until = new Promise<void>((resolve) => (release = resolve))
  service.onRequest = (request) => (ofTools(request) ? undefined : { kind: 'slow', until })
  const controller = new AbortController()
  const asked = service.next((request) => !ofTools(request))
  const query = { description: 'rain', keywords: [] }
  const found = search.find(visible(TOOLS), query, controller.signal)
  await asked
  controller.abort(new Error('gone'))
  await t.rejects(found, { message: 'gone' })
  t.notOk(search.degraded)
  release()
})

t.test('a failing service stays degraded until it responds, even if no search needs it', async (t) => {
  const { service, search, clock, find } = await start(t)
  service.onRequest = () => ({ kind: 'status', status: 400 })
  await find('rain')
  service.onRequest = () => ({ kind: 'cut' })
  await find('rain', {})
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
  while (!search.degraded) {
    await find('rain', {})
    await turn()
  }
  // An empty set or a rejected query does not end the failure, and the service is still retried.
  service.onRequest = () => ({ kind: 'status', status: 400 })
  for (const _ of [1, 2, 3]) {
    while (clock.pending.length === 0) await turn()
    clock.move(60_000)
    while (clock.pending.length === 0) await turn()
    t.ok(search.degraded)
  }
  service.onRequest = () => undefined
  while (search.degraded) {
    clock.move(60_000)
    await turn()
  }
  t.equal(names(await find('rain'))[0], 'weather')
})

t.test('a query without words causes no request', async (t) => {
  const { service, find } = await start(t)
  await find('rain')
  const asked = service.requests.length
  t.match(await find('  '), { tools: [], degraded: false })
  t.equal(service.requests.length, asked)
})

t.test('after close, no timer or request is left', async (t) => {
  const { service, search, clock, find } = await start(t)
  service.onRequest = () => ({ kind: 'cut' })
  await find('rain')
  await search.close()
  t.same(clock.pending, [])
})
