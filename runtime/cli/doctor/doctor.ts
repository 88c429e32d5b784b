/**
 * Runs `gatehouse doctor`: reads what it was given, examines, reports. The checks are runtime/doctor's.
 */
import { readFileSync, statSync } from 'node:fs'
import { environment, parseTarget, proxyEnvironment, shownUri } from '../../config/index.ts'
import {
  type Examination,
  type ExamineOptions,
  examineRemote,
  profileNamed,
  profiles,
} from '../../doctor/index.ts'
import { refused } from '../clients/host.ts'
import { exitCode, painter, print } from '../output.ts'
import { type Examined, type FailOn, isFailed, reportLines, reportObject } from './report.ts'

export interface DoctorFlags {
  readonly tokenFile?: string
  readonly clientId?: string
  readonly redirectUri?: string
  readonly register: boolean
  readonly watch: number
  readonly provider?: string
  readonly caFile?: string
  readonly timeout: number
  readonly failOn: FailOn
  readonly output: 'text' | 'json'
}

/** More is no token and no certificate bundle. */
const maxFileBytes = 1_048_576

export async function doctor(url: string | undefined, flags: DoctorFlags): Promise<number> {
  if (url === undefined) throw refused('give the URL of an MCP server; see gatehouse doctor --help')
  const common = commonOptions(flags)
  const examined = [await remoteTarget(url, common)]
  if (flags.output === 'json') print(JSON.stringify(reportObject(examined, flags.failOn), undefined, 2))
  else {
    const paint = painter(process.stdout.isTTY && process.stdout.hasColors())
    for (const each of examined) print(`${reportLines(each, paint).join('\n')}\n`)
  }
  return isFailed(examined, flags.failOn) ? exitCode.failed : exitCode.ok
}

export type CommonOptions = Omit<ExamineOptions, 'target'>

function commonOptions(flags: DoctorFlags): CommonOptions {
  const { provider, redirectUri, clientId } = flags
  if (provider !== undefined && profileNamed(provider) === undefined) {
    throw refused(`--provider: no such provider; known: ${profiles.map(({ id }) => id).join(', ')}`)
  }
  if (redirectUri !== undefined && !URL.canParse(redirectUri)) {
    throw refused('--redirect-uri: must be an absolute URL')
  }
  const token = flags.tokenFile === undefined ? undefined : readToken(flags.tokenFile)
  return {
    timeoutMs: flags.timeout * 1000,
    watchMs: flags.watch * 1000,
    register: flags.register,
    proxy: proxyEnvironment(environment()),
    ...(redirectUri !== undefined && { redirectUri }),
    ...(clientId !== undefined && { clientId }),
    ...(provider !== undefined && { provider }),
    ...(token !== undefined && { token }),
    ...(flags.caFile !== undefined && { ca: readBounded('--ca-file', flags.caFile) }),
  }
}

/** One remote server; throws INVALID_CONFIG when the URL is none. */
export async function remoteTarget(url: string, common: CommonOptions): Promise<Examined> {
  parseTarget(url, true)
  const target = new URL(url)
  if (target.username !== '' || target.password !== '') {
    throw refused(`${shownUri(url)}: a URL must not carry credentials; use --token-file`)
  }
  return examinedOf(shownUri(url), await examineRemote({ ...common, target }))
}

export function examinedOf(target: string, { findings, profile }: Examination): Examined {
  if (profile === undefined) return { target, findings }
  const { id, title, quirks } = profile
  return { target, provider: { id, title, quirks }, findings }
}

function readToken(path: string): string {
  const token = readBounded('--token-file', path).trim()
  // A header value: anything else would be refused by the HTTP client, with the token in the message.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw refused(`--token-file: ${path} must hold one token of visible ASCII characters`)
  }
  return token
}

function readBounded(flag: string, path: string): string {
  const source = path === '-' ? 0 : path
  try {
    if (path !== '-' && statSync(path).size > maxFileBytes) throw new Error('it is larger than 1 MiB')
    return readFileSync(source, 'utf8')
  } catch (error) {
    throw refused(
      `${flag}: ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}
