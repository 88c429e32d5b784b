/**
 * Process settings of `gatehouse vmcp serve` that are not in the file: the listener, and the lifetime and number of
 * sessions. A flag takes precedence over the environment variable, which is intended for pods.
 */
import { isIP } from 'node:net'
import type { CertificateFiles } from '../../../schemas/certificate/index.ts'
import { GatehouseError, parseDuration } from '../../../schemas/index.ts'
import type { Environment } from '../proxy/env.ts'
import { hostName, originViolation, quoteShortened } from '../common/setting-errors.ts'
import { servingFiles, type ServingFlags } from '../common/serving-files.ts'
import { vmcpEnvironment } from './file.ts'

/** Values as typed by the user; undefined for unset values. */
export interface ServeFlags extends ServingFlags {
  readonly host: string
  readonly port: string
  readonly sessionTtl?: string | undefined
  readonly maxSessions?: string | undefined
  readonly workers?: string | undefined
  readonly allowedOrigins: readonly string[]
}

export interface ServeSettings {
  readonly host: string
  readonly port: number
  /** Certificate files; undefined for plain HTTP. */
  readonly tls: CertificateFiles | undefined
  /** Idle timeout of sessions; undefined for the server's default. */
  readonly sessionTtlMs: number | undefined
  /** Maximum number of sessions; undefined for the server's default. */
  readonly maxSessions: number | undefined
  readonly allowedOrigins: readonly string[]
  /** Number of processes; undefined for the value in the file. */
  readonly workers: number | undefined
}

const sessionCeiling = 1_000_000

/**
 * Returns the settings. Throws an INVALID_CONFIG error that lists every invalid setting, with its value and the rule.
 */
export function serveSettings(flags: ServeFlags, env: Environment): ServeSettings {
  const violations: string[] = []
  const { host, allowedOrigins } = flags
  if (isIP(host) === 0 && !hostName.test(host))
    violations.push(`--host: must be an IP address or a host name, found ${quoteShortened(host)}`)
  for (const origin of allowedOrigins) {
    const problem = originViolation(origin)
    if (problem !== undefined) violations.push(`--allowed-origins: ${problem}`)
  }

  function whole(name: string, value: string | undefined, min: number, max: number): number | undefined {
    if (value === undefined) return undefined
    const number = /^\d{1,7}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    violations.push(`${name}: must be a whole number from ${min} to ${max}, found ${quoteShortened(value)}`)
    return undefined
  }

  function duration(name: string, value: string | undefined): number | undefined {
    if (value === undefined) return undefined
    try {
      const ms = parseDuration(value)
      return ms > 0 ? ms : undefined
    } catch {
      violations.push(
        `${name}: must be a non-negative duration such as 30s or 1h30m, found ${quoteShortened(value)}`,
      )
      return undefined
    }
  }

  function tlsFiles(): CertificateFiles | undefined {
    try {
      return servingFiles(flags)
    } catch (error) {
      violations.push(error instanceof Error ? error.message : String(error))
      return undefined
    }
  }

  const tls = tlsFiles()
  const port = whole('--port', flags.port, 0, 65_535) ?? 0
  const ttl = named('--session-ttl', flags.sessionTtl, vmcpEnvironment.sessionTtl, env)
  const sessionTtlMs = duration(ttl.name, ttl.value)
  const cap = named('--max-sessions', flags.maxSessions, vmcpEnvironment.maxSessions, env)
  const maxSessions = whole(cap.name, cap.value, 1, sessionCeiling)
  const workers = whole('--workers', flags.workers, 1, 64)
  if (violations.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('\n') })
  return { host, port, tls, sessionTtlMs, maxSessions, allowedOrigins, workers }
}

/** Returns the value and the name of its source. */
function named(flag: string, typed: string | undefined, variable: string, env: Environment) {
  return typed === undefined
    ? { name: variable, value: env[variable] || undefined }
    : { name: flag, value: typed }
}
