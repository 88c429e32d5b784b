/**
 * The files of `--webhook-config`, which contain the lists `mutating` and `validating`, with our member names or
 * ToolHive's (`failure_policy`, `tls_config`, `hmac_secret_ref`, times in nanoseconds).
 *
 * Each file is checked separately, so errors contain the file and the member name as written in the file. A webhook in
 * a later file replaces an earlier webhook with the same list and name.
 * Source: `schemas/runtime/webhooks.json`; docs/guides/webhooks.md.
 */
import { isAbsolute } from 'node:path'
import {
  GatehouseError,
  isFields,
  type RuntimeWebhook,
  type RuntimeWebhooks,
  validateRuntime,
  type Violation,
  own,
} from '../../../schemas/index.ts'
import { invalidConfig, readConfigText, readDocument } from '../common/config-file.ts'
import { makeSecretsProvider, type SecretsProvider } from '../common/secrets.ts'
import type { Environment } from './env.ts'

const lists = ['mutating', 'validating'] as const

/** Maps webhook member names in ToolHive's files to ours. */
const ownMembers: Readonly<Record<string, string>> = { failure_policy: 'failurePolicy', timeout: 'timeout' }
const tlsMembers: Readonly<Record<string, string>> = {
  ca_bundle_path: 'caBundlePath',
  client_cert_path: 'clientCertificatePath',
  client_key_path: 'clientKeyPath',
  insecure_skip_verify: 'insecureSkipVerify',
}

/** Returns the errors in a webhook's files and variables: lines that start with `<field>.<member>: `. */
export type CheckWebhook = (
  webhook: RuntimeWebhook,
  list: (typeof lists)[number],
  field: string,
) => readonly string[]

/**
 * Reads all files and appends their webhooks to the webhooks in `first`. Throws an INVALID_CONFIG error that lists all
 * files with all their errors, including errors from `check`.
 */
export function readWebhookFiles(
  paths: readonly string[],
  env: Environment,
  { first = {}, check }: { readonly first?: RuntimeWebhooks | undefined; readonly check: CheckWebhook },
): RuntimeWebhooks {
  const errors: string[] = []
  let merged = first
  for (const path of paths) {
    try {
      merged = mergedWith(merged, readFile(path, env, check))
    } catch (error) {
      if (!(error instanceof GatehouseError) || error.code !== 'INVALID_CONFIG') throw error
      errors.push(error.message)
    }
  }
  if (errors.length > 0)
    throw new GatehouseError('INVALID_CONFIG', {
      detail: errors.map((line) => `--webhook-config: ${line}`).join('\n'),
    })
  const { violations } = validateRuntime('webhooks', merged)
  if (violations.length > 0) throw invalidConfig(violations, '--webhook-config, all files together')
  return merged
}

function mergedWith(before: RuntimeWebhooks, after: RuntimeWebhooks): RuntimeWebhooks {
  const entries = lists.map((list) => {
    const byName = new Map<string, RuntimeWebhook>()
    for (const webhook of [...(before[list] ?? []), ...(after[list] ?? [])]) byName.set(webhook.name, webhook)
    return [list, [...byName.values()]] as const
  })
  return Object.fromEntries(entries.filter(([, webhooks]) => webhooks.length > 0))
}

function readFile(path: string, env: Environment, check: CheckWebhook): RuntimeWebhooks {
  const reader = new WebhookFileReader(env)
  const document = reader.document(readDocument(readConfigText(path), path))
  const { config, violations } = validateRuntime('webhooks', document)
  const all = [...reader.violations, ...violations.map((one) => reader.asWritten(one))]
  if (all.length > 0 || !config) throw invalidConfig(all, path)
  const broken = lists.flatMap((list) =>
    (config[list] ?? []).flatMap((webhook, index) => check(webhook, list, `${list}[${index}]`)),
  )
  if (broken.length > 0)
    throw invalidConfig(
      broken.map((line) => reader.lineAsWritten(line)),
      path,
    )
  return config
}

/** Converts a document to our members, and error messages about our members to the names in the file. */
class WebhookFileReader {
  readonly violations: Violation[] = []
  readonly #env: Environment
  /** Maps a webhook's path to our members, and our members to their names in the file. */
  readonly #written = new Map<string, Map<string, string>>()
  #secrets: SecretsProvider | undefined

  constructor(env: Environment) {
    this.#env = env
  }

  document(value: unknown): unknown {
    if (!isFields(value)) return value
    const entries = Object.entries(value).map(([key, list]) => {
      const known = lists.some((name) => name === key) && Array.isArray(list)
      return [key, known ? list.map((item, index) => this.#webhook(item, `${key}[${index}]`)) : list]
    })
    return Object.fromEntries(entries) as unknown
  }

  asWritten({ path, message }: Violation): Violation {
    const renamed = this.#renaming(path)
    return { path: renamed(path), message: renamed(message) }
  }

  /** Renames only the member name, because file paths may contain any text. */
  lineAsWritten(line: string): Violation {
    const end = line.indexOf(': ')
    const path = line.slice(0, end)
    return { path: this.#renaming(path)(path), message: line.slice(end + 2) }
  }

  #renaming(path: string): (text: string) => string {
    const [at = ''] = /^\w+\[\d+\]/.exec(path) ?? []
    const names = this.#written.get(at) ?? new Map<string, string>()
    return (text) => text.replaceAll(/\b[a-z]+[A-Z]\w*\b/g, (name) => names.get(name) ?? name)
  }

  #webhook(value: unknown, at: string): unknown {
    if (!isFields(value)) return value
    const { tls_config: tls, hmac_secret_ref: secret, ...rest } = value
    const webhook = new Map<string, unknown>()
    const names = new Map<string, string>()
    this.#written.set(at, names)
    const set = (name: string, as: string, given: unknown): void => {
      const before = names.get(name)
      if (before !== undefined)
        this.#refuse(`${at}.${as}`, `is another spelling of ${before}; set only one of them`)
      webhook.set(name, given)
      names.set(name, as)
    }
    for (const [key, given] of Object.entries(rest)) {
      const name = own(ownMembers, key) ?? key
      if (name !== 'timeout' || typeof given !== 'number') set(name, key, given)
      else if (given >= 1e9 && given <= 30e9 && Number.isInteger(given)) set(name, key, `${given}ns`)
      else
        this.#refuse(
          `${at}.timeout`,
          'a number without a unit is in nanoseconds and must be from 1e9 to 30e9; for example, use 5s or 5000000000',
        )
    }
    if (tls !== undefined) this.#tls(tls, `${at}.tls_config`, set)
    if (secret !== undefined) {
      const { hmacSecretPath, hmacSecretEnv } = this.#secretOf(secret, `${at}.hmac_secret_ref`)
      if (hmacSecretPath !== undefined) set('hmacSecretPath', 'hmac_secret_ref', hmacSecretPath)
      if (hmacSecretEnv !== undefined) set('hmacSecretEnv', 'hmac_secret_ref', hmacSecretEnv)
    }
    // Reports missing members under the names in the file.
    if (tls !== undefined)
      for (const [key, name] of Object.entries(tlsMembers))
        if (!names.has(name)) names.set(name, `tls_config.${key}`)
    return Object.fromEntries(webhook) as unknown
  }

  #tls(value: unknown, at: string, set: (name: string, as: string, given: unknown) => void): void {
    if (!isFields(value)) return this.#refuse(at, 'expected an object')
    for (const [key, given] of Object.entries(value)) {
      const name = own(tlsMembers, key)
      if (name !== undefined) set(name, `tls_config.${key}`, given)
      else
        this.#refuse(`${at}.${key}`, `unknown field; expected one of ${Object.keys(tlsMembers).join(', ')}`)
    }
  }

  /** Reads a path, the name of a secret, or a name with the suffix that ToolHive's commands write. */
  #secretOf(
    value: unknown,
    at: string,
  ): { readonly hmacSecretPath?: string | undefined; readonly hmacSecretEnv?: string | undefined } {
    if (typeof value !== 'string' || value === '') {
      this.#refuse(at, 'expected the name of a secret or the path of a file')
      return {}
    }
    if (isAbsolute(value)) return { hmacSecretPath: value }
    try {
      this.#secrets ??= makeSecretsProvider(this.#env)
      const { file, variable } = this.#secrets.locate(value.replace(/,target=.*$/, ''))
      return { hmacSecretPath: file, hmacSecretEnv: variable }
    } catch (error) {
      if (!(error instanceof GatehouseError) || error.code !== 'INVALID_CONFIG') throw error
      this.#refuse(at, error.message)
      return {}
    }
  }

  #refuse(path: string, message: string): void {
    this.violations.push({ path, message })
  }
}
