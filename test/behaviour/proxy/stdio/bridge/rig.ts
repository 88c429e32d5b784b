/** A bridge to a program of either era. */
import type { Test } from 'tap'
import { silentLog } from '../../../../../runtime/net/index.ts'
import { type StdioBridge, startStdioBridge } from '../../../../../runtime/proxy/index.ts'
import type { ServerBridgeOptions } from '../../../../../runtime/proxy/stdio-server/bridge.ts'

export const program = 'test/helpers/mcp/fixture-server/stdio-program.ts'

export const askable = { elicitation: {}, sampling: {}, roots: {} }

export async function bridgeTo(
  t: Test,
  command: readonly string[],
  more: Partial<ServerBridgeOptions> = {},
): Promise<StdioBridge> {
  const bridge = await startStdioBridge({
    command: [process.execPath, ...command],
    env: { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
    cwd: process.cwd(),
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    ...more,
  })
  t.teardown(() => bridge.close())
  return bridge
}
