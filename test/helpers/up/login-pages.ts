/** Serves the login pages of `gatehouse up --login` in this process, with a listener instead of the virtual server. */
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type LoginServer, startLoginServer } from '../../../runtime/tools/up/identity/login-server.ts'
import { Users } from '../../../runtime/tools/up/identity/users.ts'
import { freePort } from '../gatehouse.ts'

export const redirectUri = 'http://127.0.0.1:4483/mcp/oauth/callback'
export const clientSecret = 'planted-client-secret-planted-client-secret'
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

export interface LoginRig {
  readonly users: Users
  readonly server: LoginServer
  readonly origin: string
  readonly file: string
  readonly start: string
}

/** Serves the pages behind a listener instead of the virtual server. It forwards requests with their headers. */
export async function startLoginPages(t: Test): Promise<LoginRig> {
  const file = join(t.testdir({}), 'login/users.json')
  const users = new Users(file)
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const address = `http://127.0.0.1:${port}/mcp`
  const clientId = 'gatehouse-up'
  const server = await startLoginServer({ origin, address, clientId, clientSecret, redirectUri, users })
  const front = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => void forward())
    async function forward(): Promise<void> {
      const { host: _host, connection: _connection, 'content-length': _length, ...headers } = req.headers
      const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined
      const answer = await fetch(`${server.url}${req.url}`, {
        method: req.method ?? 'GET',
        headers: headers as Record<string, string>,
        redirect: 'manual',
        ...(body && { body }),
      })
      const { 'content-encoding': _e, ...more } = Object.fromEntries(answer.headers)
      res.writeHead(answer.status, { ...more, 'set-cookie': answer.headers.getSetCookie() })
      res.end(Buffer.from(await answer.arrayBuffer()))
    }
  })
  await new Promise<void>((resolve) => front.listen(port, '127.0.0.1', resolve))
  t.teardown(async () => {
    front.close()
    front.closeAllConnections()
    await server.close()
  })
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid profile',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 's',
  })
  return { users, server, origin, file, start: `${origin}/login/auth?${query.toString()}` }
}
