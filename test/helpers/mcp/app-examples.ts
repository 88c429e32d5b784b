/** Example servers of the MCP Apps project from npm. Each server runs in its own process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { freePort } from '../gatehouse.ts'

export type AppExample = 'vanillajs' | 'preact'

/** Returns the folder of an example, which contains its page `mcp-app.html`. */
export function exampleFolder(example: AppExample): string {
  return `node_modules/@modelcontextprotocol/server-basic-${example}/dist`
}

/** Returns the server's URL. */
export async function startAppExample(t: Pick<Test, 'teardown'>, example: AppExample): Promise<string> {
  const port = await freePort()
  const server = spawn(process.execPath, [`${exampleFolder(example)}/index.js`], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, PORT: String(port) },
  })
  t.teardown(async () => {
    server.kill('SIGKILL')
    await once(server, 'close')
  })
  for await (const line of createInterface({ input: server.stdout })) if (line.includes(String(port))) break
  server.stdout.resume()
  return `http://127.0.0.1:${port}/mcp`
}
