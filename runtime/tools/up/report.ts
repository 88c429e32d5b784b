/** The report of `gatehouse up` and `gatehouse status`, as JSON and as text. */
import { clientRow, isClientId, printableName } from '../../toolkit/clients/index.ts'
import type { MemberPhase } from '../../toolkit/local/screen/member-states.ts'
import { forTerminal, quantity } from '../../toolkit/terminal/plain-text.ts'

export interface ServerReport {
  readonly name: string
  readonly state: MemberPhase | 'skipped'
  readonly reason?: string
  /** The next step for the reason. */
  readonly nextStep?: string
  /** Address where the user signs in, including the required key. */
  readonly signInUrl?: string
}

export interface ClientReport {
  readonly client: string
  readonly file: string
  /** connected: the file contains the gateway's entry. */
  readonly state: 'connected' | 'not changed'
  readonly reason?: string
}

export interface UpReport {
  readonly schema: 'gatehouse.dev/up/v1'
  readonly pid: number
  readonly url: string
  /**
   * The login that the address requires from all programs except this user's clients; null without `--login`. `issuer`
   * is null for the built-in identity provider. `link` is the address where the owner sets up a sign-in; null once the
   * link is used.
   */
  readonly login: { readonly issuer: string | null; readonly link: string | null } | null
  /** Address of the web console, with a token that grants access to it. */
  readonly console: string | null
  /** Number of tools behind the address. Null when the tools cannot be counted. */
  readonly tools: number | null
  readonly servers: readonly ServerReport[]
  readonly clients: readonly ClientReport[]
}

/** Returns the text form. */
export function reportLines({ url, login, console, tools, servers, clients }: UpReport): readonly string[] {
  const named = (state: ServerReport['state']) =>
    servers.filter((server) => server.state === state).map(({ name }) => printableName(name))
  const lines: string[] = []
  const ready = named('ready')
  if (ready.length > 0) {
    const count = tools === null ? '' : `   ${quantity(tools, 'tool')}`
    lines.push(`  ready     ${ready.join(', ')}${count}`)
  }
  const signIns = servers.flatMap(({ name, signInUrl }) =>
    signInUrl === undefined ? [] : [{ name: printableName(name), signInUrl }],
  )
  const nameWidth = Math.max(0, ...signIns.map(({ name }) => name.length))
  for (const { name, signInUrl } of signIns)
    lines.push(`  sign in   ${name.padEnd(nameWidth)}   open ${forTerminal(signInUrl)}`)
  const starting = named('starting')
  if (starting.length > 0) lines.push(`  starting  ${starting.join(', ')}`)
  for (const { name, state, reason = '', nextStep } of servers) {
    if (state !== 'failed' && state !== 'skipped') continue
    lines.push(`  ${state.padEnd(8)}  ${printableName(name)}: ${forTerminal(reason)}`)
    if (nextStep !== undefined) lines.push(`            Next step: ${forTerminal(nextStep)}`)
  }
  if (url !== '') lines.push(`One address: ${url}`)
  if (url !== '' && login) lines.push(...loginLines(login))
  const connected = clients.filter(({ state }) => state === 'connected').map(({ client }) => titleOf(client))
  if (connected.length > 0)
    lines.push(
      `${joinNames(connected)} now ${connected.length === 1 ? 'uses' : 'use'} it. Undo with: gatehouse down`,
    )
  for (const { client, file, reason = '' } of clients.filter(({ state }) => state !== 'connected'))
    lines.push(`${titleOf(client)} was not changed (${file}): ${forTerminal(reason)}`)
  if (console !== null) lines.push(`Console: ${console}`)
  return lines
}

function loginLines({ issuer, link }: NonNullable<UpReport['login']>): readonly string[] {
  const where = issuer === null ? '' : ` at ${forTerminal(issuer)}`
  const lines = [`Other clients must sign in${where} in a browser.`]
  if (link !== null) lines.push(`Set up your own sign-in first (works once, within 24 hours): ${link}`)
  return lines
}

export function titleOf(client: string): string {
  return isClientId(client) ? clientRow(client).title : client
}

/** Returns `A, B and C`, without duplicates. */
export function joinNames(names: readonly string[]): string {
  const unique = [...new Set(names)]
  const last = unique.at(-1) ?? ''
  return unique.length > 1 ? `${unique.slice(0, -1).join(', ')} and ${last}` : last
}
