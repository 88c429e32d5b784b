/**
 * Measures the CPU time of a call in the built programs: the paths through both eras against the floor, and the cost of
 * each feature.
 *
 * The floor is a program with `node:http` and an undici pool that only forwards. Servers take turns in short slices, and
 * a figure is the median of the slices, so that ratios hold on a busy machine. BENCH_OTHER_DIST names the `dist` folder
 * of another build, whose servers then take turns with those of the current build; `git worktree add` and
 * `node manifests/bundle/main.ts` create one.
 */
import { missingRedis, startRedis } from '../helpers/redis.ts'
import { type Parts, runParts } from './common/parts.ts'
import { type Measured, measureCalls } from './cost/compare.ts'
import { removeFolder, stopServers } from './cost/servers.ts'
import { startTokens } from './cost/tokens.ts'
import { measureCourse, measureStalledLog } from './cost/warmth.ts'
import { featureWays, floorWay, proxyWay, tokenWay, vmcpWay } from './cost/ways.ts'
import { pinSelf, startBackends, stopAll } from './vmcp/rig.ts'
import { type Cell, table } from './vmcp/table.ts'

export const parts: Parts = {
  paths,
  features,
  token,
  course: async () => measureCourse((await startBackends({ era: 'session' })).url),
  'stalled-log': async () => measureStalledLog((await startBackends({ era: 'session' })).url),
}

/** Measures the named parts, or all. Resolves with true when all were measured. */
export async function run(wanted: readonly string[] = []): Promise<boolean> {
  pinSelf()
  try {
    return await runParts('cost', parts, {
      wanted,
      limitMs: 10 * 60_000,
      cleanUp: () => Promise.all([stopServers(), stopAll()]),
    })
  } finally {
    removeFolder()
  }
}

/** Measures the proxy and the virtual server in both eras against the floor. */
async function paths(): Promise<string> {
  const { url } = await startBackends({ era: 'session' })
  const stateless = (await startBackends({ era: 'stateless' })).url
  const measured = await measureCalls([
    floorWay(url),
    proxyWay(url),
    vmcpWay(url, 'vMCP, session client and backend'),
    vmcpWay(stateless, 'vMCP, stateless client and backend', 'stateless'),
    vmcpWay(url, 'vMCP, stateless client, session backend', 'stateless'),
    vmcpWay(stateless, 'vMCP, session client, stateless backend'),
  ])
  return tableOf(measured, 'of the floor')
}

/** Measures what each feature adds to a call of the virtual server. */
async function features(): Promise<string> {
  const { url } = await startBackends({ era: 'session' })
  const redis = missingRedis ? undefined : await startRedis()
  try {
    const measured = await measureCalls([vmcpWay(url), ...featureWays(url, redis)])
    return `${tableOf(measured, 'of a call without features')}${redis ? '' : `\n\n${missingRedis}`}`
  } finally {
    await redis?.stop()
  }
}

/** Measures what a JSON Web Token adds to a call of the proxy. */
async function token(): Promise<string> {
  const { url } = await startBackends({ era: 'session' })
  const issuer = await startTokens()
  try {
    return tableOf(await measureCalls([proxyWay(url), tokenWay(url, issuer)]), 'of a call without a token')
  } finally {
    issuer.close()
  }
}

/** The first row is the base of the ratios. */
function tableOf(measured: readonly Measured[], base: string): string {
  const first = measured[0]
  const hasOther = first?.otherMicros !== undefined
  const rows = measured.map(({ name, micros, otherMicros }): Cell[] => [
    name,
    micros,
    micros / (first?.micros ?? Number.NaN),
    ...(otherMicros === undefined
      ? []
      : [otherMicros, otherMicros / (first?.otherMicros ?? Number.NaN), micros / otherMicros]),
  ])
  const other = hasOther ? ['other build, CPU µs', `other build, × ${base}`, '× the other build'] : []
  return table(['tools/call', 'CPU µs', `× ${base}`, ...other], rows)
}

if (import.meta.main) process.exit((await run(process.argv.slice(2))) ? 0 : 1)
