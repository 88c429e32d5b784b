/**
 * The control listener of a running `gatehouse up`, which `status`, `restart` and `down` call. The listener binds to
 * the loopback interface and requires a token that only the instance's owner can read.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatehouseError, invalidConfig } from '../../../../schemas/index.ts'
import { type Listener, listen, sendJson, sendProblem, silentLog, tokenDigest } from '../../../net/index.ts'
import { printableName } from '../../../toolkit/clients/index.ts'
import type { Accounts } from '../identity/login.ts'
import type { Instance } from './instance.ts'
import type { UpReport } from '../report.ts'

export interface ControlActions {
  status(): Promise<UpReport>
  /** Resolves to false when no server has this name. */
  restart(name: string): Promise<boolean>
  /** The users of the built-in identity provider. Undefined without this provider. */
  readonly accounts: Accounts | undefined
  /** Ends the logins of all users. */
  endLogins(): Promise<unknown>
  /** Stops the instance. The caller restores the clients' files. */
  stop(): void
}

export interface Control {
  readonly address: NonNullable<Instance['control']>
  close(): Promise<void>
}

export async function serveControl(actions: ControlActions): Promise<Control> {
  const token = randomBytes(32).toString('base64url')
  const listener: Listener = await listen({
    host: '127.0.0.1',
    port: 0,
    localTokens: { digests: { control: tokenDigest(token) } },
    log: silentLog,
    handler: (req, res) => {
      answer(req, res, actions).catch((error: unknown) => sendProblem(res, error))
    },
  })
  return { address: { url: listener.url, token }, close: () => listener.close({ graceMs: 500 }) }
}

async function answer(req: IncomingMessage, res: ServerResponse, actions: ControlActions): Promise<void> {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://127.0.0.1')
  const action = pathname.slice(1)
  // The name is in the query, because URLs resolve "." and ".." in paths.
  const name = searchParams.get('name') ?? ''
  if (req.method === 'GET' && action === 'status') return sendJson(res, 200, await actions.status())
  if (action === 'users') return sendJson(res, 200, await changeUsers(req.method ?? '', name, actions))
  if (req.method !== 'POST') throw new GatehouseError('NOT_FOUND')
  if (action === 'restart') return sendJson(res, 200, { found: await actions.restart(name) })
  if (action !== 'stop') throw new GatehouseError('NOT_FOUND')
  sendJson(res, 200, {})
  actions.stop()
}

/** Lists, invites or removes users. The result contains `problem` instead when the request is invalid. */
async function changeUsers(
  method: string,
  name: string,
  { accounts, endLogins }: ControlActions,
): Promise<UsersAnswer> {
  if (!accounts)
    return {
      problem: 'gatehouse up is running without the built-in identity provider; restart it with --login',
    }
  if (method === 'GET')
    return {
      users: accounts.users.all.map((user) => ({
        name: user.name,
        signsInWith: user.passkeys.length > 0 ? 'passkey' : user.password === undefined ? null : 'password',
      })),
    }
  if (method === 'DELETE') {
    if (!accounts.users.remove(name)) return { problem: `no user ${name}; see gatehouse up user list` }
    await endLogins()
    return {}
  }
  try {
    return { link: accounts.invite(name) }
  } catch (error) {
    if (!(error instanceof GatehouseError && error.code === 'INVALID_CONFIG')) throw error
    return { problem: error.message }
  }
}

export interface UsersAnswer {
  readonly problem?: string
  readonly link?: string
  readonly users?: readonly { readonly name: string; readonly signsInWith: 'passkey' | 'password' | null }[]
}

/**
 * Time limit for the instance's response. A restart waits for a process, and a status request waits for the servers'
 * lists.
 */
const timeoutMs = 60_000
const stopTimeoutMs = 10_000

/** Returns the path of a request about a server or a user. */
export function pathAbout(action: 'restart' | 'users', name: string): string {
  return `${action}?name=${encodeURIComponent(name)}`
}

/** Sends a request to the instance. Throws INVALID_CONFIG when the instance does not respond. */
export async function askInstance(
  { pid, control, starting = [] }: Instance,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
): Promise<unknown> {
  if (!control) {
    const waiting = starting.length > 0 ? ` and waiting for ${starting.map(printableName).join(', ')}` : ''
    throw invalidConfig(`gatehouse up is still starting (process ${pid})${waiting}; try again`)
  }
  try {
    const response = await fetch(`${control.url}/${path}`, {
      method,
      headers: { authorization: `Bearer ${control.token}` },
      signal: AbortSignal.timeout(path === 'stop' ? stopTimeoutMs : timeoutMs),
    })
    if (response.ok) return await response.json()
  } catch {
    // The code below reports the error, without the address and the token.
  }
  throw invalidConfig(`gatehouse up does not answer (process ${pid}); stop it with gatehouse down`)
}
