/**
 * Formats the output of `gatehouse up --share`: the users' access to servers, and the steps for a colleague to connect.
 */
import { hostname, userInfo } from 'node:os'
import type { UpReport } from './report.ts'
import type { UpSettings } from './state.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'

/** Returns no lines without `--share`, or when there is no login or nothing to share. */
export function shareLines(report: UpReport, settings: UpSettings | undefined): readonly string[] {
  const { login } = settings ?? {}
  if (!settings || !login?.share || !report.login || report.url === '') return []
  const { port } = settings
  const ready = report.servers.filter(({ state }) => state === 'ready').map(({ name }) => name)
  const count = report.tools === null ? 'all tools' : quantity(report.tools, 'tool')
  return [
    '',
    'Share with a colleague',
    `  Access: after a login, ${count} of ${ready.join(', ') || 'no server'}. The servers run with your files and accounts.`,
    ...stepsFor(report, login.publicUrl, port),
  ]
}

function stepsFor({ url, login }: UpReport, publicUrl: string | undefined, port: number): readonly string[] {
  const invite =
    login?.issuer === null
      ? '  1. Create an account. Send the link to your colleague only:  gatehouse up user add NAME'
      : `  1. Allow the account:  gatehouse up --login ${login?.issuer} --login-allow EMAIL …`
  const add = `claude mcp add --transport http gatehouse ${url}`
  if (publicUrl === undefined) {
    const { username } = userInfo()
    return [
      invite,
      '  2. Your colleague forwards the port. This requires an SSH account on this machine:',
      `       ssh -N -L ${port}:127.0.0.1:${port} ${username}@${hostname()}`,
      `  3. Your colleague adds ${url} to an MCP client, such as:`,
      `       ${add}`,
      '  To publish the address instead, start with --public-url https://… (see the guide for gatehouse up).',
    ]
  }
  return [
    invite,
    `  2. Open a tunnel that serves ${publicUrl}. Requests without a login are rejected:`,
    `       gatehouse proxy tunnel http://127.0.0.1:${port} gatehouse --target-requires-login --tunnel-provider PROVIDER --provider-args JSON`,
    `  3. Your colleague adds ${url} to an MCP client, such as:`,
    `       ${add}`,
  ]
}
