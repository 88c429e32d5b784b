/** Runs `gatehouse run` in tests with a user's command line, until it prints an address. */
import type { Test } from 'tap'
import { freePort, startGatehouse } from '../gatehouse.ts'
import { connect } from '../mcp/clients.ts'

/** A server that reports its command-line arguments. */
export const argvServer = ['node', 'test/helpers/clients/argv-server.ts'] as const

/** Waits until the address is printed and every server behind it responds. Returns the address. */
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

/** Returns the arguments that the server behind the address reports. */
export async function askStarted(url: string, tool: string): Promise<Started> {
  const client = await connect('sdk1', url)
  const text = await client.callText(tool)
  await client.close()
  return JSON.parse(text) as Started
}
