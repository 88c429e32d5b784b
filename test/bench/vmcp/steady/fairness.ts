/**
 * Measures the effect of one caller with a thousand calls in flight on other callers.
 *
 * Callers are anonymous here and distinguished by their addresses, 127.0.0.x. Backend and callers share the cores that
 * the server does not use, so direct access is measured too.
 */
import { setTimeout } from 'node:timers/promises'
import { callOf } from '../client.ts'
import { Crowd, type Outcome } from './crowd.ts'
import { startBackends, startServer } from '../rig.ts'
import { type Cell, progress, quantile, sorted, table } from '../table.ts'
import { type Measured, type Rule, withVerdict } from './verdict.ts'

const IN_FLIGHT = 1_000
const OTHERS = 10
/** Requests per second of all other callers together. */
const RATE = 100
const SECONDS = 5
const GIVE_UP_MS = 30_000
/** Allowed factor on the median of the other callers. */
const times = 2
/** Tools by their duration. Only tools that take some time resemble real ones. */
const tools = [
  { tool: 'slow', what: '100 ms', counts: true },
  { tool: 'echo', what: 'nothing', counts: false },
] as const

export async function fairness(): Promise<Measured> {
  const backend = await startBackends({ era: 'stateless', tools: 20 })
  const server = await startServer(backend.urls)
  const rows: Cell[][] = []
  const rules: Rule[] = []
  for (const { tool, what, counts } of tools) {
    const from = (address: string, maxConnections: number, url = server.url, name = `b0_${tool}`): Crowd =>
      new Crowd({
        url,
        requests: [callOf('stateless', name)],
        maxConnections,
        giveUpMs: GIVE_UP_MS,
        localAddress: address,
      })
    const others = Array.from({ length: OTHERS }, (_, i) => from(`127.0.0.${i + 10}`, 100))
    const directly = [from('127.0.0.9', 100, backend.url, tool)]
    const one = from('127.0.0.2', IN_FLIGHT)
    const row = (name: string, outcomes: readonly Outcome[], seconds: number): number => {
      const ms = sorted(outcomes.filter(({ status }) => status === 200).map((each) => each.ms))
      const p50 = quantile(ms, 0.5)
      const refused = outcomes.filter(({ status }) => status === 503).length / seconds
      const failed = outcomes.length - ms.length - refused * seconds
      rows.push([
        what,
        name,
        ms.length / seconds,
        refused,
        failed,
        p50,
        quantile(ms, 0.9),
        quantile(ms, 0.99),
      ])
      return p50
    }
    progress(`a tool that takes ${what}: warming up`)
    await one.inFlight(32, 3)
    progress('others alone')
    const [alone, direct] = await Promise.all([evenly(others), evenly(directly)])
    const aloneMs = row('others, alone', alone, SECONDS)
    row('direct, alone', direct, SECONDS)
    progress(`beside one with ${IN_FLIGHT} calls in flight`)
    const load = one.inFlight(IN_FLIGHT, SECONDS + 3)
    await setTimeout(2_000)
    const [beside, directBeside] = await Promise.all([evenly(others), evenly(directly)])
    const ofOne = await load
    const besideMs = row('others, at the same time', beside, SECONDS)
    row('direct, at the same time', directBeside, SECONDS)
    row(`the one with ${IN_FLIGHT}`, ofOne, SECONDS + 3)
    if (counts) {
      const ratio = besideMs / aloneMs
      rules.push(
        { what: `the p50 of others does not double (${ratio.toFixed(2)} times)`, isMet: ratio < times },
        {
          what: 'no call of others is refused or fails',
          isMet: beside.every(({ status }) => status === 200),
        },
      )
    }
    for (const crowd of [one, ...others, ...directly]) crowd.close()
  }
  await server.stop()
  await backend.stop()
  const head = ['the tool takes', 'callers', 'calls/s', 'refused/s', 'failed', 'p50 ms', 'p90 ms', 'p99 ms']
  return withVerdict('vmcp:fairness', table(head, rows), rules)
}

/** Sends requests of all crowds in turn, at equal intervals. */
async function evenly(crowds: readonly Crowd[]): Promise<readonly Outcome[]> {
  const outcomes = crowds.map(async (crowd, i) => {
    await setTimeout((i * 1_000) / RATE)
    return crowd.atRate(RATE / crowds.length, SECONDS)
  })
  return (await Promise.all(outcomes)).flat()
}
