/**
 * Checks that calls have not become much more expensive (`make bench-check`, a few minutes). Compares the CPU time of a
 * call with the floor, and of each feature with a call without features, in one run. Exits with 1 when a ratio exceeds
 * its limit.
 *
 * The limits are about a quarter above the figures in docs/evidence/performance.md, because ratios on a busy machine
 * differ by up to a fifth between runs. Only calls that exceed their limit are measured a second time.
 */
import { missingRedis, startRedis } from '../../helpers/redis.ts'
import { pinSelf, startBackends, stopAll } from '../vmcp/rig.ts'
import { type Cell, table } from '../vmcp/table.ts'
import { measureCalls, type Way } from './compare.ts'
import { limitOf, overLimit, type Checked } from './limits.ts'
import { removeFolder, stopServers } from './servers.ts'
import { startTokens } from './tokens.ts'
import { featureWays, floorWay, proxyWay, tokenWay, vmcpWay } from './ways.ts'

async function check(): Promise<boolean> {
  const session = await startBackends({ era: 'session' })
  const stateless = await startBackends({ era: 'stateless' })
  const redis = missingRedis ? undefined : await startRedis()
  const issuer = await startTokens()
  const { url } = session
  const all = [
    floorWay(url),
    proxyWay(url),
    tokenWay(url, issuer),
    vmcpWay(url),
    vmcpWay(stateless.url, 'vMCP, stateless', 'stateless'),
    ...featureWays(url, redis),
  ]
  try {
    const first = overLimit(await measureCalls(all))
    console.log(`\n${tableOf(first)}\n`)
    const over = first.filter(({ isOver }) => isOver).flatMap(({ name, base }) => [name, base])
    if (over.length === 0) return passed(redis !== undefined)
    console.log('Measuring the calls that exceed their limits again ...')
    const again = all.filter((way: Way) => over.includes(way.name))
    const second = overLimit(await measureCalls(again)).filter(
      ({ name }) => limitOf(name) && over.includes(name),
    )
    console.log(`\n${tableOf(second)}\n`)
    if (!second.some(({ isOver }) => isOver)) return passed(redis !== undefined)
    console.log(
      'A call has become more expensive. Find the cause with a profile: node --cpu-prof runtime/cli/main.ts ...',
    )
    return false
  } finally {
    issuer.close()
    await redis?.stop()
    await Promise.all([stopServers(), stopAll()])
    removeFolder()
  }
}

function passed(hasRedis: boolean): boolean {
  console.log(
    hasRedis
      ? 'All ratios are within their limits.'
      : `All measured ratios are within their limits. ${missingRedis}`,
  )
  return true
}

function tableOf(checked: readonly Checked[]): string {
  return table(
    ['tools/call', 'CPU µs', 'compared with', 'ratio', 'limit', 'met'],
    checked.map(({ name, micros, base, ratio, limit, isOver }): Cell[] => [
      name,
      micros,
      base,
      ratio,
      limit,
      isOver ? 'NO' : 'yes',
    ]),
  )
}

pinSelf()
process.exit((await check()) ? 0 : 1)
