/** `gatehouse run` in tests: started as a user types it, until it has an address. */
import type { Test } from 'tap'
import { freePort, startGatehouse } from '../gatehouse.ts'
import { connect } from '../mcp/clients.ts'

/** A server that tells how it was started. */
export const argvServer = ['node', 'test/helpers/clients/argv-server.ts'] as const

/** Runs until the address is printed and everything behind it answers; answers the address. */
export async function startRun(
  t: Pick<Test, 'teardown'>,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
) {
  const port = String(await freePort())
  const running = startGatehouse(['run', '--port', port, ...args], { ...process.env, ...env })
  t.teardown(() => running.interrupt())
  const [url] = await running.waitFor(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/m)
  await running.waitFor(/^(The server is responding|All servers are responding)\.$/m)
  return { running, url }
}

export interface Started {
  readonly args: readonly string[]
  readonly token?: string
  readonly port?: string
  readonly headers: { readonly key?: string }
}

/** What the server behind the address says of its start. */
export async function askStarted(url: string, tool: string): Promise<Started> {
  const client = await connect('sdk1', url)
  const text = await client.callText(tool)
  await client.close()
  return JSON.parse(text) as Started
}
